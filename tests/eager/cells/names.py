"""Torch's names of what was recorded, one operation a line, with where its cotangents go."""

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x + 1
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x - 1
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = 1 - x
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x * 2
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x / 2
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = 2 / x
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x**2
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = 2**x
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x**x
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = -x
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = abs(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.sin()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.cos()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.tan()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.asin()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.acos()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.atan()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.sinh()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.cosh()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.tanh()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.asinh()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x + 1).acosh()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.atanh()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.exp()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.exp2()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.expm1()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.log()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.log2()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.log10()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.log1p()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.sqrt()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.rsqrt()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.reciprocal()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.square()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.sigmoid()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.relu()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.erf()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.logit()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.floor()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.ceil()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.round()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.trunc()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.sign()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.sum()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.mean()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.prod()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.std()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.var()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.max()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.min()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.amax()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.amin()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.median()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.norm()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.sum(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.mean(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.prod(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.std(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.max(0).values
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.min(0).values
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.median(0).values
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.sort().values
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.topk(2).values
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.cumsum(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.cumprod(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.logsumexp(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.softmax(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.log_softmax(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.clamp(0, 1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.clamp(min=0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.clamp_min(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.clamp_max(1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x[0]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x[1:]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x[:]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x[None]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x[x > 0.5]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x[[0, 1]]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x[..., 0]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m[0, 1]
(y.grad_fn, y)
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m[:, 0]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m[0]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m[0, 1:]
(y.grad_fn, y)
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m[1:, 1:]
(y.grad_fn, y)
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.T
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.t()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.mT
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.permute(1, 0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.transpose(0, 1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.view(-1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.reshape(-1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.T.reshape(-1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.flatten()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.unsqueeze(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.unsqueeze(0).squeeze()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.unsqueeze(0).squeeze(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.expand(2, 3)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.repeat(2)
(y.grad_fn, y)
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.clone()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.double()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.flip(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.roll(1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.tril()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.triu()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.diagonal()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.trace()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m @ m
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x @ m
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m @ x
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x @ x
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.mm(m)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.mv(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.dot(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.outer(x, x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.bmm(m[None], m[None])
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.cat([x, x])
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.stack([x, x])
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.where(x > 0.5, x, 0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.maximum(x, x * 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.minimum(x, x * 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.max(x, x * 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.fmax(x, x * 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.atan2(x, x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.hypot(x, x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.logaddexp(x, x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.remainder(x, 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.fmod(x, 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.masked_fill(x > 0.5, 0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.gather(0, torch.tensor([0, 1]))
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.index_select(0, torch.tensor([0]))
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.masked_select(x > 0.5)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.unbind()[0]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.split(2)[0]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.chunk(3)[1]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.split([1, 2])[1]
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.lerp(x, 0.5)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.nan_to_num()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.addmm(m, m, m)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.relu(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.gelu(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.silu(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.leaky_relu(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.elu(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.softplus(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.sigmoid(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.tanh(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.logsigmoid(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.hardtanh(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.softmax(x, dim=0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.log_softmax(x, dim=0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.mse_loss(x, x.detach())
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.l1_loss(x, x.detach() * 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.l1_loss(x, x.detach() * 2, reduction="none")
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.smooth_l1_loss(x, x.detach() * 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.huber_loss(x, x.detach() * 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.binary_cross_entropy(x, x.detach())
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.binary_cross_entropy_with_logits(x, x.detach())
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.nll_loss(m, torch.tensor([0, 1, 2]))
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.cross_entropy(m, torch.tensor([0, 1, 2]))
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.linear(m, m, x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.linear(m, m)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.linear(x, m)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.layer_norm(m, (3,))
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = F.layer_norm(m.double(), (3,), x.double(), x.double())
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.diff()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.to(torch.float64)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.reshape(3, 1) @ x.reshape(1, 3)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x * 1).add_(1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x * 1).mul_(2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x * 1).zero_()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x * 1).fill_(2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x * 1).exp_()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x * 1).copy_(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x * 1).squeeze_(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = (x * 1).unsqueeze_(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.scatter(x, 0, torch.tensor([0]), torch.ones(1))
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.index_add(x, 0, torch.tensor([0]), x[:1])
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.kthvalue(2).values
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.norm(dim=1)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.linalg.norm(m)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.linalg.inv(m.double() + torch.eye(3))
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.linalg.det(m.double())
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.square(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.div(x, 2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.sub(x, 1, alpha=2)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = torch.add(x, x, alpha=2)
(y.grad_fn, y)
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.addcmul(x, x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.pow(3)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.pow(0.5)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.var(0)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.contiguous()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = m.T.contiguous()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.view_as(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.expand_as(m)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.float()
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)

# %%
x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
m = torch.tensor([[1.0, 2.0, 0.5], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], requires_grad=True)
y = x.type_as(x)
(y.grad_fn, y)
[
    type(n).__name__ if n is not None and "Accumulate" in str(n) else str(n).split()[0]
    for n, i in y.grad_fn.next_functions
] if y.grad_fn is not None else []
((y * y * y).sum() / 1000).backward()
(x.grad, m.grad)
