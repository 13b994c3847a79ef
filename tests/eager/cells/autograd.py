"""The graph, backward, modes and errors."""

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
y.backward()

# %%
x = torch.tensor([1.0, 2.0])
x.sum().backward()

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x**2).sum()
y.backward()
y.backward()

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x + 1).sum()
y.backward()
y.backward()
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x**2).sum()
y.backward(retain_graph=True)
y.backward()
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
y.requires_grad = False

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
x += 1

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
x[0] = 1

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
x.zero_()

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 1
z = y**2
y += 1
z.sum().backward()

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * x
with torch.no_grad():
    x += 1
y.sum().backward()

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.sin()
y += 1
y.sum().backward()
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 3
y[0] = 0
y
y.sum().backward()
x.grad

# %%
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 3
v = y[1:]
v *= 2
v
y
y.sum().backward()
x.grad

# %%
x = torch.zeros(3)
w = torch.tensor(2.0, requires_grad=True)
x[1] = w * 3
x
x.sum().backward()
w.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
y.grad
y.retain_grad()
y.sum().backward()
y.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
h = y.register_hook(lambda g: g * 10)
y.register_hook(lambda g: print("hook", g))
y.sum().backward()
x.grad
h.remove()

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
x.register_hook(lambda g: g + 1)
x.register_post_accumulate_grad_hook(lambda p: print("done", p.grad))
(x * x + x).sum().backward()
x.grad

# %%
torch.ones(2).register_hook(print)

# %%
torch.ones(2).retain_grad()

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x**3).sum()
(g,) = torch.autograd.grad(y, x, create_graph=True)
g
(h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
h
torch.autograd.grad(h.sum(), x)

# %%
x = torch.tensor(2.0, requires_grad=True)
y = x**3
y.backward(create_graph=True)
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
z = torch.tensor(1.0, requires_grad=True)
torch.autograd.grad(x.sum(), z)

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
z = torch.tensor(1.0, requires_grad=True)
torch.autograd.grad(x.sum(), (x, z), allow_unused=True)

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
torch.autograd.grad((x * 2).sum(), torch.ones(2))

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
(x * 2).backward(torch.ones(3))

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.tensor([3.0, 4.0], requires_grad=True)
(x * y).sum().backward(inputs=[x])
x.grad
y.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
z = y * 3
torch.autograd.grad(z.sum(), y)
torch.autograd.backward([x.sum(), (x * x).sum()])
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():
    y = x * 2
    print(torch.is_grad_enabled(), y.requires_grad)
    with torch.enable_grad():
        z = x * 2
        print(torch.is_grad_enabled(), z.requires_grad)
print(torch.is_grad_enabled())
torch.set_grad_enabled(False)
(x * 2).requires_grad
torch.set_grad_enabled(True)
(x * 2).requires_grad
with torch.set_grad_enabled(False):
    print((x * 2).requires_grad)
with torch.inference_mode():
    y = x * 2
    print(y.requires_grad, torch.is_inference_mode_enabled())
y.is_leaf

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)


@torch.no_grad()
def f(x):
    return x * 2

f(x)


@torch.inference_mode()
def g(x):
    return x * 2

g(x).requires_grad


@torch.enable_grad()
def h(x):
    return x * 2

with torch.no_grad():
    print(h(x))

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.inference_mode():
    y = torch.ones(2)
y.add_(1)

# %%
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result

x = torch.tensor([0.0, 1.0], requires_grad=True)
y = Exp.apply(x)
y
y.grad_fn.next_functions
y.sum().backward()
x.grad

# %%
class Mul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.save_for_backward(a, b)
        ctx.scale = scale
        return a * b * scale

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b * ctx.scale, g * a * ctx.scale, None

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.tensor([3.0, 4.0], requires_grad=True)
z = Mul.apply(x, y, 2)
(g,) = torch.autograd.grad(z.sum(), x, create_graph=True)
g
g.sum().backward()
y.grad

# %%
class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)

x = torch.tensor([0.1, 0.2], requires_grad=True)
LegendrePolynomial3.apply(x).sum().backward()
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
torch.autograd.functional.jacobian(lambda x: x**2, x)
torch.autograd.functional.hessian(lambda x: (x**3).sum(), x)
torch.autograd.functional.vjp(lambda x: x**2, x, torch.ones(2))
torch.autograd.functional.jvp(lambda x: x**2, x, torch.ones(2))
torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, torch.ones(2))
torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.ones(2))
torch.autograd.functional.jacobian(lambda x, y: x * y, (x, torch.tensor([3.0, 4.0])))
torch.autograd.functional.jacobian(lambda x: (x.sum(), x * 2), x)

# %%
x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(lambda x: (x**2).sin(), (x,))
torch.autograd.gradgradcheck(lambda x: (x**2).sin(), (x,))

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.detach()
y += 1
x
(x * x).sum().backward()
x.grad
x.grad.zero_()
x.grad = torch.ones(2)
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
x.grad = torch.ones(3)

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
x.detach_()
x.requires_grad
y = (torch.ones(2, requires_grad=True) * 2).detach_()
y

# %%
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = a.max(dim=0)
b
b.values.backward()
a.grad

# %%
a = torch.tensor([[1.0, 2.0], [3.0, 1.0]], requires_grad=True)
first, second = a
first
first.sum().backward()
a.grad
p, q = a.split(1, dim=1)
p
(p * 2 + q).sum().backward()
a.grad
q.grad_fn.next_functions

# %%
x = torch.tensor([3.0, 1.0], requires_grad=True)
x.max().backward()
x.grad

# %%
x = torch.tensor([2.0, 2.0], requires_grad=True)
torch.maximum(x, torch.tensor([2.0, 1.0], requires_grad=True)).sum().backward()
x.grad

# %%
x = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
F.relu(x).sum().backward()
x.grad
x.grad = None
x.abs().sum().backward()
x.grad
x.grad = None
x.clamp(0, 1).sum().backward()
x.grad
x.grad = None
(x**0).sum().backward()
x.grad
x.grad = None
x.norm().backward()
x.grad

# %%
x = torch.tensor([0.0, 4.0], requires_grad=True)
x.sqrt().sum().backward()
x.grad
x.grad = None
torch.zeros(2, requires_grad=True).norm()
x.prod().backward()
x.grad

# %%
with torch.autograd.detect_anomaly(check_nan=True):
    x = torch.tensor([-1.0], requires_grad=True)
    x.sqrt().sum().backward() if False else print("ok")

# %%
x = torch.tensor([1 + 1j], requires_grad=True)
y = (x * x.conj()).real.sum()
y
y.backward()
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
x.sum().backward(torch.tensor(2.0))
x.grad
x[0].backward()
x.grad
x[torch.tensor([0, 0, 1])].sum().backward()
x.grad

# %%
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
x.t().contiguous().view(-1)[1].backward()
x.grad
x.std().backward()
x.grad
x.requires_grad_(False)
x.grad

# %%
x = torch.tensor(1.0, requires_grad=True)
y = x
for i in range(3):
    y = y * 2 if y < 3 else y + x
y
y.backward()
x.grad

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.clone()
y.mul_(y)
y
y.sum().backward()

# %%
import copy

x = torch.tensor([1.0, 2.0], requires_grad=True)
copy.deepcopy(x)
x.sum().backward()
copy.deepcopy(x).grad

# %%
x = torch.ones(2, requires_grad=True)
x.grad_fn
(x + 1).is_leaf
x.is_leaf
x.output_nr if hasattr(x, "output_nr") else 0
(x + 1)._version
y = x + 1
y.add_(1)
y._version
y.retains_grad
