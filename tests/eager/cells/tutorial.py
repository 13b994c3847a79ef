"""The tutorial "Automatic differentiation with torch.autograd", cell by cell."""

# %%
torch.manual_seed(0)
x = torch.ones(5)  # input tensor
y = torch.zeros(3)  # expected output
w = torch.randn(5, 3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
z = torch.matmul(x, w) + b
loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
print(f"Gradient function for z = {z.grad_fn}")
print(f"Gradient function for loss = {loss.grad_fn}")
loss.backward()
print(w.grad)
print(b.grad)
z = torch.matmul(x, w) + b
print(z.requires_grad)
with torch.no_grad():
    z = torch.matmul(x, w) + b
print(z.requires_grad)
z = torch.matmul(x, w) + b
z_det = z.detach()
print(z_det.requires_grad)
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"First call\n{inp.grad}")
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nSecond call\n{inp.grad}")
inp.grad.zero_()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nCall after zeroing gradients\n{inp.grad}")

# %%
torch.manual_seed(1)
x = torch.ones(5)
y = torch.zeros(3)
w = torch.randn(5, 3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
z = torch.matmul(x, w) + b
loss = F.binary_cross_entropy_with_logits(y, z)
loss
loss.backward()
w.grad
b.grad
z
z.grad_fn.next_functions
z.grad_fn.next_functions[0][0].next_functions
z.grad_fn.next_functions[0][0].next_functions[0][0].next_functions
z.grad_fn.next_functions[1][0].variable is b
loss.grad_fn.name()
z.grad_fn.next_functions[1][0].name()
loss.grad_fn.next_functions

# %%
x = torch.tensor([2.0, 3.0], requires_grad=True)
y = torch.tensor([6.0, 4.0], requires_grad=True)
Q = 3 * x**3 - y**2
Q
external_grad = torch.tensor([1.0, 1.0])
Q.backward(gradient=external_grad)
x.grad
y.grad
print(9 * x**2 == x.grad)
print(-2 * y == y.grad)

# %%
torch.manual_seed(0)
x = torch.rand(5, 3)
print(x)
x = torch.rand(2, 2, requires_grad=True)
y = x + 2
print(y)
z = y * y * 3
out = z.mean()
print(z, out)
out.backward()
print(x.grad)

# %%
a = torch.randn(2, 2)
a = (a * 3) / (a - 1)
print(a.requires_grad)
a.requires_grad_(True)
print(a.requires_grad)
b = (a * a).sum()
print(b.grad_fn)

# %%
import math

torch.manual_seed(0)
x = torch.linspace(-math.pi, math.pi, 200)
y = torch.sin(x)
a = torch.randn((), requires_grad=True)
b = torch.randn((), requires_grad=True)
c = torch.randn((), requires_grad=True)
d = torch.randn((), requires_grad=True)
for t in range(300):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        a -= 1e-6 * a.grad
        b -= 1e-6 * b.grad
        c -= 1e-6 * c.grad
        d -= 1e-6 * d.grad
        a.grad = None
        b.grad = None
        c.grad = None
        d.grad = None
print(f"Result: y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")
