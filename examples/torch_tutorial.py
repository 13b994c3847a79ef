"""PyTorch's tutorial "Automatic differentiation with torch.autograd", line for line, without PyTorch.

The one line that differs is the import. What it prints is what torch 2.13 prints.
"""

import symgrad.eager as torch

torch.manual_seed(0)  # torch's own numbers

# -- tensors, functions and computational graph --------------------------------------------------------------------

x = torch.ones(5)  # input tensor
y = torch.zeros(3)  # expected output
w = torch.randn(5, 3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
z = torch.matmul(x, w) + b
loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)

print(f"Gradient function for z = {z.grad_fn}")
print(f"Gradient function for loss = {loss.grad_fn}")

# -- computing gradients -------------------------------------------------------------------------------------------

loss.backward()
print(w.grad)
print(b.grad)

# -- disabling gradient tracking -----------------------------------------------------------------------------------

z = torch.matmul(x, w) + b
print(z.requires_grad)

with torch.no_grad():
    z = torch.matmul(x, w) + b
print(z.requires_grad)

z = torch.matmul(x, w) + b
z_det = z.detach()
print(z_det.requires_grad)

# -- optional reading: tensor gradients and Jacobian products ------------------------------------------------------

inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"First call\n{inp.grad}")
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nSecond call\n{inp.grad}")
inp.grad.zero_()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nCall after zeroing gradients\n{inp.grad}")
