"""PyTorch's tutorial "Automatic differentiation with torch.autograd", line for line, without PyTorch.

The one line that differs is the import. What it prints is what torch 2.13 prints. At the end stands what draws the tutorial's
picture of the graph.
"""

from _picture import picture

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

# -- the computational graph, as backward() went through it --------------------------------------------------------

with picture("torch_tutorial", size=(5.0, 4.5)) as axes:
    leaves, level = {id(w): "w", id(b): "b"}, [(loss.grad_fn, 0.0)]
    for depth in range(6):
        below = []
        for node, at in level:
            name = leaves[id(node.variable)] if hasattr(node, "variable") else node.name()
            axes.text(at, -depth, name, ha="center", va="center", bbox={"boxstyle": "round", "fc": "lightblue"})
            parents = [parent for parent, _ in node.next_functions if parent is not None]
            for k, parent in enumerate(parents):
                there = at + k - 0.5 * (len(parents) - 1)
                axes.annotate("", (there, -depth - 0.8), (at, -depth - 0.2), arrowprops={"arrowstyle": "->"})
                below.append((parent, there))
        level = below
    axes.set(xlim=(-1.6, 1.6), ylim=(-4.5, 0.5), title="the graph of loss")
    axes.axis("off")
