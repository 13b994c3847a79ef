"""nn.functional, by value and gradient."""

# %%
torch.manual_seed(0)
x = torch.randn(4, requires_grad=True)
for f in (
    F.relu,
    F.gelu,
    F.silu,
    F.leaky_relu,
    F.elu,
    F.softplus,
    F.sigmoid,
    F.tanh,
    F.hardtanh,
    F.relu6,
    F.mish,
    F.selu,
    F.softsign,
):
    x.grad = None
    y = f(x)
    y.sum().backward()
    print(f.__name__, y, x.grad)
F.logsigmoid(x)
F.gelu(x, approximate="tanh")
F.leaky_relu(x, 0.3)
F.elu(x, 2.0)
F.softplus(x, beta=2)
F.softmax(x, dim=0)
F.log_softmax(x, dim=-1)

# %%
torch.manual_seed(0)
x = torch.randn(3, 5, requires_grad=True)
t = torch.tensor([1, 0, 4])
for options in (
    {},
    {"reduction": "sum"},
    {"reduction": "none"},
    {"label_smoothing": 0.1},
    {"weight": torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])},
    {"ignore_index": 0},
    {"weight": torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), "label_smoothing": 0.2},
    {"label_smoothing": 0.2, "reduction": "sum"},
):
    x.grad = None
    loss = F.cross_entropy(x, t, **options)
    loss.sum().backward()
    print(loss, x.grad)
F.nll_loss(F.log_softmax(x, 1), t)
F.cross_entropy(x, F.softmax(torch.ones(3, 5), 1))
F.cross_entropy(x, F.softmax(torch.ones(3, 5), 1), label_smoothing=0.1)
F.cross_entropy(x[0], torch.tensor(2))
F.cross_entropy(x.reshape(1, 5, 3), torch.tensor([[0, 1, 2]]))

# %%
torch.manual_seed(0)
x = torch.randn(3, requires_grad=True)
t = torch.tensor([0.0, 1.0, 0.5])
for options in (
    {},
    {"reduction": "sum"},
    {"reduction": "none"},
    {"weight": torch.tensor([1.0, 2.0, 3.0])},
    {"pos_weight": torch.tensor([1.0, 2.0, 3.0])},
):
    x.grad = None
    loss = F.binary_cross_entropy_with_logits(x, t, **options)
    loss.sum().backward()
    print(loss, x.grad)
F.binary_cross_entropy(torch.sigmoid(x), t)
F.binary_cross_entropy(torch.sigmoid(x), t, reduction="none")
F.binary_cross_entropy(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0]))
F.binary_cross_entropy_with_logits(torch.tensor([100.0, -100.0]), torch.tensor([0.0, 1.0]))

# %%
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
t = torch.tensor([1.5, 2.0, 7.0])
for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
    for reduction in ("mean", "sum", "none"):
        x.grad = None
        loss = f(x, t, reduction=reduction)
        loss.sum().backward()
        print(f.__name__, loss, x.grad)
F.smooth_l1_loss(x, t, beta=0.2)
F.huber_loss(x, t, delta=0.2)
F.kl_div(x.log_softmax(0), t.softmax(0), reduction="batchmean")

# %%
F.binary_cross_entropy_with_logits(torch.ones(3), torch.ones(2))

# %%
F.mse_loss(torch.ones(3), torch.ones(3), reduction="max")

# %%
F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))

# %%
F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0]))

# %%
torch.manual_seed(0)
x, w, b = (
    torch.randn(2, 3, requires_grad=True),
    torch.randn(4, 3, requires_grad=True),
    torch.randn(4, requires_grad=True),
)
y = F.linear(x, w, b)
y
y.sum().backward()
(x.grad, w.grad, b.grad)
F.linear(x, w)
F.linear(x[0], w, b)
F.layer_norm(x, (3,))
F.layer_norm(x, (3,), torch.ones(3), torch.zeros(3))
F.one_hot(torch.tensor([0, 2, 1]))
F.one_hot(torch.tensor([0, 2, 1]), num_classes=4)
F.dropout(x, 0.5, training=False) is x
F.dropout(torch.ones(1000), 0.5).unique()
F.normalize(x)
F.cosine_similarity(x, x).detach()
F.pad(x, (1, 2))

# %%
F.one_hot(torch.tensor([0, 5]), num_classes=4)

# %%
p = torch.tensor([1.0, 2.0], requires_grad=True)
for make in (
    lambda p: torch.optim.SGD(p, lr=0.1),
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    lambda p: torch.optim.Adam(p, lr=0.1),
    lambda p: torch.optim.AdamW(p, lr=0.1),
    lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.1, amsgrad=True),
    lambda p: torch.optim.SGD(p, lr=0.01, maximize=True, dampening=0.1, momentum=0.5),
):
    q = p.detach().clone().requires_grad_()
    o = make([q])
    for i in range(4):
        o.zero_grad()
        (q**3).sum().backward()
        o.step()
    print(q)
print(sorted(o.state_dict()), sorted(o.state_dict()["state"][0]))
o.load_state_dict(o.state_dict())
torch.optim.SGD([p], lr=0.1)
torch.optim.Adam([p])

# %%
torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=-1)

# %%
torch.optim.SGD([], lr=1)

# %%
torch.optim.SGD([torch.ones(1, requires_grad=True) * 2], lr=1)

# %%
torch.optim.SGD(torch.ones(1, requires_grad=True), lr=1)
