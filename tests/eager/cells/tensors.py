"""Making tensors, their attributes, conversions and numbers."""

# %%
torch.tensor(3)
torch.tensor(3.5)
torch.tensor([1, 2, 3])
torch.tensor([1.0, 2, 3])
torch.tensor([[1.0, -2.0], [3.0, 4.0]])
torch.tensor(True)
torch.tensor([True, False])
torch.tensor(1 + 2j)
torch.tensor([[1 + 2j, 3 - 4j]])
torch.tensor([])
torch.tensor([[]])
torch.tensor([1.5], dtype=torch.float64)
torch.tensor([1.5], dtype=torch.int64)
torch.tensor([1, 2], dtype=torch.float32, requires_grad=True)

# %%
import numpy as np

torch.tensor(np.array([1.0, 2.0]))
torch.tensor(np.array([1, 2], dtype=np.int32))
torch.tensor([np.float64(1.5), 2])
torch.from_numpy(np.arange(3.0))
torch.as_tensor([1, 2.5])
a = np.zeros(3)
t = torch.from_numpy(a)
t[0] = 7
print(a)
torch.tensor(np.float32(2.5))

# %%
torch.tensor(torch.tensor([1.0, 2.0]))

# %%
torch.tensor([[1, 2], [3]])

# %%
torch.tensor("a")

# %%
torch.tensor([1, 2], requires_grad=True)

# %%
torch.ones(2, 3)
torch.ones((2, 3))
torch.zeros([2])
torch.full((2, 2), 7)
torch.full((2,), 1.5)
torch.full((2,), True)
torch.eye(3)
torch.eye(2, 3)
torch.arange(5)
torch.arange(1, 4)
torch.arange(0, 1, 0.25)
torch.arange(5, 0, -2)
torch.arange(3, dtype=torch.float64)
torch.linspace(0, 1, 5)
torch.linspace(-3.1, 7.7, 7)
torch.ones_like(torch.tensor([1, 2]))
torch.zeros_like(torch.tensor([1.0, 2]), dtype=torch.int32)
torch.full_like(torch.ones(2), 3)
torch.ones(2, requires_grad=True)
torch.zeros(2, 0)
torch.ones(())
torch.arange(0)

# %%
x = torch.ones(5, 3)
x.shape
x.size()
x.size(0)
x.shape[1:]
x.shape == (5, 3)
x.dim()
x.ndim
x.numel()
x.dtype
x.device
len(x)
x.shape.numel()
x.is_floating_point()
x.type()
x.stride()
x.T.shape
x.t().stride()
x.is_leaf
x.requires_grad
x.grad
x.grad_fn
x.element_size()
x.nelement()
x.is_contiguous()
x.T.is_contiguous()

# %%
torch.float32
torch.int64
torch.bool
torch.double
torch.get_default_dtype()
torch.float32.is_floating_point
torch.complex64.is_complex
str(torch.float16)
torch.float == torch.float32
torch.promote_types(torch.int32, torch.float32)
torch.result_type(torch.tensor([1]), 2.0)

# %%
x = torch.tensor([2.5])
x.item()
x.tolist()
float(x)
int(x)
bool(x)
x.numpy()
x.double()
x.long()
x.int()
x.bool()
x.half()
x.to(torch.float64)
x.to("cpu")
x.to(torch.int32)
x.type(torch.float64)
x.float() is x
x.clone()
x.detach()
f"{torch.tensor(2.5):.3f}"
f"{torch.tensor(2.5)}"
f"{x}"
str(x)

# %%
x = torch.tensor([1.0, 2.0])
bool(x)

# %%
x = torch.tensor([1.0, 2.0])
x.item()

# %%
x = torch.ones(3, requires_grad=True)
x.numpy()

# %%
x = torch.ones(3, requires_grad=True)
x.detach().numpy()
y = x * 2
y
y.detach()
y.clone()
y.double()
y.to(torch.int32)
y.view(3, 1)
y.reshape(1, 3)
y.data
y.tolist()

# %%
float(torch.ones(1, requires_grad=True))

# %%
torch.set_default_dtype(torch.float64)
print(torch.ones(2), torch.tensor(1.5), torch.tensor([1.5], dtype=torch.float32), torch.tensor(1j))
torch.set_default_dtype(torch.float32)
print(torch.ones(2), torch.tensor([1.5], dtype=torch.float64))

# %%
torch.set_default_dtype(torch.int64)

# %%
torch.ones(2) + torch.ones(2, dtype=torch.float64)
torch.ones(2) + torch.tensor(1.0, dtype=torch.float64)
torch.tensor([1, 2]) + 1.5
torch.tensor([1, 2]) / 2
torch.tensor([7, -7]) // 2
torch.tensor([7, -7]) % 3
torch.tensor([1, 2]) * torch.tensor(2.5)
torch.tensor([1, 2], dtype=torch.int32) + torch.tensor([1, 2])
torch.tensor([1, 2], dtype=torch.int32) + 5
torch.tensor([1, 2], dtype=torch.uint8) - 3
torch.tensor([True, False]) + 1
torch.tensor([True, False]) + 1.5
torch.tensor([True, False]) * torch.tensor([2.0, 3.0])
torch.tensor(3) / torch.tensor(2)
torch.tensor([1, 2]) + torch.tensor([0.5, 0.5], dtype=torch.float16)
torch.tensor([1.0]) + 1j
torch.tensor([1], dtype=torch.int8) + torch.tensor(300)
torch.tensor([1.0], dtype=torch.float64) * torch.tensor([2.0])
torch.tensor([2, 3]) ** 2
torch.tensor([2, 3]) ** 2.0
2 ** torch.tensor([2, 3])
2 / torch.tensor([4, 5])
5 - torch.tensor([1, 2])
-torch.tensor([1, -2])
abs(torch.tensor([1, -2]))
~torch.tensor([True, False])
torch.tensor([1, 2]) == torch.tensor([1, 3])
torch.tensor([1.0, 2.0]) > 1.5
torch.tensor([1, 2]) & 1
torch.sin(torch.tensor([1, 2]))
torch.sqrt(torch.tensor(4))
torch.exp(torch.tensor([0, 1]))
torch.sum(torch.tensor([True, True]))
torch.sum(torch.tensor([1, 2], dtype=torch.int32))

# %%
torch.tensor([True]) - torch.tensor([True])

# %%
torch.tensor([2]) ** -1

# %%
torch.tensor([1, 2]).mean()

# %%
torch.tensor([1.0, 2.0]) + torch.tensor([1.0, 2.0, 3.0])

# %%
torch.ones(2, 3) @ torch.ones(2, 3)

# %%
torch.ones(3) @ torch.ones(2, 3)

# %%
torch.ones(2, 3) @ torch.ones(2)

# %%
torch.ones(2) @ torch.ones(3)

# %%
torch.ones(2, 3) @ torch.ones(3, 2, dtype=torch.float64)

# %%
torch.ones(2, 3) @ torch.ones(3)
torch.ones(3) @ torch.ones(3, 2)
torch.ones(3) @ torch.ones(3)
torch.ones(2, 2, 3) @ torch.ones(3, 2)
torch.ones(2, 2, 3) @ torch.ones(2, 3, 2)
torch.ones(2, 3).mm(torch.ones(3, 1))
torch.ones(3).dot(torch.ones(3))
torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 2))
torch.addmm(torch.ones(2, 2), torch.ones(2, 3), torch.ones(3, 2))

# %%
torch.tensor(5)[0]

# %%
x = torch.arange(12.0).reshape(3, 4)
x
x[0]
x[0, 1]
x[:, 1]
x[1:, ::2]
x[-1]
x[..., 0]
x[None].shape
x[torch.tensor([0, 2])]
x[[0, 2], [1, 3]]
x[x > 5]
x[x > 100]
x[torch.tensor(1)]
x[1:1]
x[:, None].shape
list(x[0])
[row.sum() for row in x]
x.T
x.mT
x.view(4, 3)
x.view(-1)
x.reshape(2, 6)
x.flatten()
x.unsqueeze(0).shape
x[None, :, None].squeeze().shape
x.unsqueeze(-1).squeeze(-1).shape
x.permute(1, 0).shape
x.transpose(0, 1)
x.expand(2, 3, 4).shape
x[:1].repeat(2, 2)
torch.cat([x, x]).shape
torch.cat([x, x], dim=1)
torch.stack([x, x]).shape
x.split(2)
x.chunk(2, dim=1)
torch.split(x, [1, 2])
x.unbind()
x.flip(0)
x.roll(1, 0)
x.tril()
x.triu(1)
x.diagonal()
x.narrow(1, 1, 2)
x.index_select(1, torch.tensor([0, 2]))
x.gather(1, torch.tensor([[0, 1], [1, 2], [2, 3]]))
torch.where(x > 5, x, 0)
torch.where(x > 5, x, torch.zeros(()))
torch.where(x > 9)
x.masked_fill(x > 5, -1)
torch.nonzero(x > 9)
x.clamp(2, 8)
x.clamp(min=5)
torch.repeat_interleave(torch.tensor([1, 2]), 2)
torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")

# %%
x = torch.arange(12.0).reshape(3, 4)
x[5]

# %%
x = torch.arange(12.0).reshape(3, 4)
x[0, 0, 0]

# %%
x = torch.arange(12.0).reshape(3, 4)
x.view(5, 3)

# %%
x = torch.arange(12.0).reshape(3, 4)
x.T.view(12)

# %%
x = torch.arange(12.0).reshape(3, 4)
x.sum(dim=2)

# %%
x = torch.arange(12.0).reshape(3, 4)
x.expand(2, 4)

# %%
iter(torch.tensor(1.0))

# %%
len(torch.tensor(1.0))

# %%
torch.cat([torch.ones(2), torch.ones(2, 2)])

# %%
torch.stack([torch.ones(2), torch.ones(3)])

# %%
torch.cat([torch.ones(2, 3), torch.ones(2, 2)])

# %%
x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 9.0]])
x.sum()
x.sum(dim=0)
x.sum(1, keepdim=True)
x.sum(dim=(0, 1))
x.mean()
x.mean(dim=1)
x.std()
x.std(dim=0)
x.std(unbiased=False)
x.var(dim=1)
x.var(correction=0)
x.max()
x.max(dim=1)
x.max(dim=1, keepdim=True)
x.min(dim=0)
x.max(1).values
x.amax(dim=1)
x.argmax()
x.argmax(dim=1)
x.median()
x.median(dim=1)
torch.tensor([1.0, 4.0, 2.0, 3.0]).median()
x.prod()
x.prod(dim=0)
x.cumsum(dim=1)
x.cumprod(dim=0)
x.sort(dim=1)
x.sort(descending=True)
x.argsort(dim=1)
x.topk(2)
x.norm()
x.norm(dim=1)
x.norm(1)
x.logsumexp(dim=1)
x.softmax(dim=1)
x.log_softmax(dim=0)
x.all()
(x > 2).any(dim=0)
torch.all(x > 0)
torch.allclose(x, x + 1e-9)
torch.equal(x, x)
torch.max(x, torch.tensor(3.0))
torch.maximum(x, torch.tensor([3.0, 3.0, 3.0]))
torch.std_mean(x)
torch.quantile(x, 0.5)
torch.count_nonzero(x > 2)
torch.kthvalue(x, 2)
x.diff()
torch.trace(x)
x.abs().sqrt().exp().log()
torch.tensor([1.5, 2.5, -0.5]).round()
torch.tensor([1.5, -2.5]).floor()
torch.floor(torch.tensor([1.5, -2.5]))
torch.sign(torch.tensor([-1.0, 0.0, 2.0]))
torch.lerp(torch.zeros(2), torch.ones(2), 0.25)
torch.atan2(torch.tensor([1.0]), torch.tensor([2.0]))
torch.remainder(torch.tensor([5.0, -5.0]), 3)
torch.fmod(torch.tensor([5.0, -5.0]), 3)
torch.div(torch.tensor([5.0, -5.0]), 3, rounding_mode="floor")
torch.div(torch.tensor([5.0, -5.0]), 3, rounding_mode="trunc")
torch.linalg.norm(x)
torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 4.0]))
torch.special.expit(torch.tensor(0.0))
torch.special.erf(torch.tensor([0.5]))

# %%
x = torch.zeros(3)
x += 1
x
x.add_(2).mul_(3)
x.zero_()
x.fill_(2.5)
x[0] = 7
x[1:] = torch.tensor([8.0, 9.0])
x
x.sub_(1).div_(2)
x.copy_(torch.tensor([1.0, 2.0, 3.0]))
x.clamp_(1.5, 2.5)
x.neg_()
x.pow_(2)
x.sqrt_()
x[x > 2] = 0
x
x[[0, 1]] = 5
x
y = x.view(3, 1)
y[0, 0] = 100
x
x.t_ if False else x._version

# %%
x = torch.zeros(3, dtype=torch.int64)
x += 1.5

# %%
x = torch.zeros(3)
x.add_(torch.ones(2, 3))

# %%
x = torch.zeros(3)
x[0:2] = torch.ones(3)

# %%
torch.clamp(torch.ones(2))

# %%
torch.ones(2).requires_grad_(True).long().requires_grad_()

# %%
torch.manual_seed(42)
torch.rand(3)
torch.rand(2, 3, dtype=torch.float64)
torch.randn(4)
torch.randn(3)
torch.randn(20)
torch.randn(3, 7)
torch.randn(40, dtype=torch.float64)
torch.randn(5, dtype=torch.float64)
torch.randint(0, 10, (8,))
torch.randint(5, (2, 3))
torch.randperm(10)
torch.randn_like(torch.ones(2, 2))
torch.rand_like(torch.ones(2))
torch.ones(4).uniform_(-1, 1)
torch.ones(4).normal_(2, 3)
torch.ones(20).normal_(2, 3)
torch.normal(0.0, 1.0, size=(3,))
torch.bernoulli(torch.full((6,), 0.5))
torch.randint(-5, 5, (4,), dtype=torch.int32)

# %%
g = torch.Generator().manual_seed(7)
torch.rand(2, generator=g)
torch.randn(2, generator=g)
torch.initial_seed() is not None

# %%
torch.nan
torch.inf
torch.pi
torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
torch.isnan(torch.tensor([1.0, float("nan")]))
torch.is_tensor(torch.ones(1))
torch.numel(torch.ones(2, 3))
