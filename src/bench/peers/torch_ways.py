"""Modes in which PyTorch runs a BERT encoder, for torch_bert.py, which describes and times them.

A mode takes a `Case` and returns a function of the turn that enqueues one forward pass, token ids to last hidden state. Each mode
imports its own packages, so that a Python without one lacks only that mode.
"""
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu"}
# Number of rotating sets of ids. Weights do not rotate, so a model that fits the L2 cache is timed warm: in the peers' favour.
ROTATION = 4


class Case:
    """One shape on the GPU: rotating ids, lengths, and data derived from them."""

    def __init__(self, torch, config: dict, dtype: str, shape: dict):
        self.torch, self.config, self.dtype = torch, config, getattr(torch, DTYPES[dtype])
        self.batch, self.seq, self.lengths = shape["batch"], shape["seq"], shape["lengths"]
        self.ragged = any(length != self.seq for length in self.lengths)
        size = (self.batch, self.seq)
        self.ids = [torch.randint(0, config["vocab"], size, device="cuda") for _ in range(ROTATION)]
        positions = torch.arange(self.seq, device="cuda")
        self.keep = positions[None] < torch.tensor(self.lengths, device="cuda")[:, None]
        self.positions = positions.expand(size)

    def mask(self):
        """Mask over keys; None without padding, so that fused attention without a mask runs."""
        return self.keep[:, None, None].expand(-1, 1, self.seq, -1) if self.ragged else None


def hf_model(case: Case):
    from transformers import AttentionInterface, BertConfig, BertModel
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    c = case.config
    # While a graph is captured or traced, transformers creates a mask of ones if none is given, which excludes the flash
    # kernels. An attention without a registered mask function gets none.
    AttentionInterface.register("sdpa_without_mask", ALL_ATTENTION_FUNCTIONS["sdpa"])
    settings = BertConfig(
        vocab_size=c["vocab"], hidden_size=c["hidden"], num_hidden_layers=c["layers"], num_attention_heads=c["heads"],
        intermediate_size=c["inner"], max_position_embeddings=c["positions"], type_vocab_size=c["tokenTypes"],
        layer_norm_eps=c["eps"], hidden_act=ACTIVATIONS[c["activation"]],
        attn_implementation="sdpa" if case.ragged else "sdpa_without_mask",
    )
    model = BertModel(settings, add_pooling_layer=False).to("cuda", case.dtype).eval()
    mask = case.mask()
    return lambda ids: model(input_ids=ids, attention_mask=mask).last_hidden_state


def eager(case: Case):
    model = hf_model(case)
    return lambda turn: model(case.ids[turn % ROTATION])


def graph(case: Case):
    """One graph per set of ids, captured after the warm-up that lazy initialisation needs."""
    torch, call = case.torch, hf_model(case)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call(case.ids[0])
    torch.cuda.current_stream().wait_stream(side)
    graphs = []
    for ids in case.ids:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call(ids)
        graphs.append(graph)
    return lambda turn: graphs[turn % ROTATION].replay()


def compiled(case: Case, call):
    torch = case.torch
    fast = torch.compile(call, mode="reduce-overhead", dynamic=False)

    def step(turn: int):
        torch.compiler.cudagraph_mark_step_begin()
        return fast(turn)

    return step


def compile_hf(case: Case):
    fast = compiled(case, hf_model(case))
    return lambda turn: fast(case.ids[turn % ROTATION])


def embeddings(case: Case):
    torch, c = case.torch, case.config
    options = dict(device="cuda", dtype=case.dtype)

    class Embeddings(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(c["vocab"], c["hidden"], **options)
            self.positions = torch.nn.Embedding(c["positions"], c["hidden"], **options)
            self.types = torch.nn.Embedding(c["tokenTypes"], c["hidden"], **options)
            self.norm = torch.nn.LayerNorm(c["hidden"], eps=c["eps"], **options)

        def forward(self, ids, positions):
            return self.norm(self.words(ids) + self.positions(positions) + self.types.weight[0])

    return Embeddings().eval()


def nested(case: Case):
    torch, c = case.torch, case.config
    if c["activation"] == "gelu_tanh":
        raise ValueError("torch.nn.TransformerEncoder has no fast path for gelu_tanh")
    layer = torch.nn.TransformerEncoderLayer(
        c["hidden"], c["heads"], c["inner"], dropout=0.0, activation=c["activation"], layer_norm_eps=c["eps"],
        batch_first=True, device="cuda", dtype=case.dtype,
    )
    # Padding is on the right by construction; checking it would wait for the GPU.
    encoder = torch.nn.TransformerEncoder(layer, c["layers"], enable_nested_tensor=True, mask_check=False).eval()
    embed, padding = embeddings(case), ~case.keep
    return lambda turn: encoder(embed(case.ids[turn % ROTATION], case.positions), src_key_padding_mask=padding)


def packed(case: Case):
    torch, c = case.torch, case.config
    from torch.nn.attention.varlen import varlen_attn

    functional, options = torch.nn.functional, dict(device="cuda", dtype=case.dtype)
    hidden, inner, longest = c["hidden"], c["inner"], max(case.lengths)
    activate = {
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "relu": functional.relu,
    }[c["activation"]]

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = torch.nn.Linear(hidden, 3 * hidden, **options)
            self.projection = torch.nn.Linear(hidden, hidden, **options)
            self.norm = torch.nn.LayerNorm(hidden, eps=c["eps"], **options)
            self.up = torch.nn.Linear(hidden, inner, **options)
            self.down = torch.nn.Linear(inner, hidden, **options)
            self.last_norm = torch.nn.LayerNorm(hidden, eps=c["eps"], **options)

        def forward(self, x, starts):
            q, k, v = (part.contiguous() for part in self.qkv(x).view(len(x), 3, c["heads"], -1).unbind(1))
            context = varlen_attn(q, k, v, starts, starts, longest, longest).reshape(x.shape)
            x = self.norm(x + self.projection(context))
            return self.last_norm(x + self.down(activate(self.up(x))))

    embed = embeddings(case)
    layers = torch.nn.ModuleList(Layer() for _ in range(c["layers"])).eval()
    starts = torch.tensor([0, *case.lengths], device="cuda").cumsum(0).to(torch.int32)
    positions = case.positions[case.keep]
    ids = [full[case.keep] for full in case.ids]

    def forward(tokens):
        x = embed(tokens, positions)
        for layer in layers:
            x = layer(x, starts)
        return x

    fast = compiled(case, forward)
    return lambda turn: fast(ids[turn % ROTATION])


WAYS = {"eager": eager, "graph": graph, "compile": compile_hf, "nested": nested, "packed": packed}
RAGGED_ONLY = ("nested", "packed")
