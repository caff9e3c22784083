import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch.utils._pytree import tree_leaves  # noqa: E402

import perfci  # noqa: E402
from perfci.api import torch_models  # noqa: E402
from perfci.errors import BenchmarkError  # noqa: E402
from tests.metrics.test_accuracy import accuracy_loss  # noqa: E402


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).eval()


def refused(*arguments, **options):
    with pytest.raises(BenchmarkError) as caught:
        perfci.inference(*arguments, **options)
    assert caught.value.message.startswith(f"{__file__}:")
    assert caught.value.advice
    return caught.value


def test_a_call_gives_the_models_answer_without_gradients():
    network, x = model(), torch.randn(4, 8)
    work = perfci.inference(network, x, items=4)
    output = work.call()
    assert torch.equal(output, network(x).detach())
    assert output.is_inference()
    assert (work.compiled, work.items) == (False, 4)
    assert work.device == ("cuda" if torch.cuda.is_available() else "cpu")


class Batch:
    """What tokenisers return: no tensor and no tree, but it can be moved."""

    place = None

    def to(self, place):
        moved = Batch()
        moved.place = place
        return moved


def test_inputs_that_can_be_moved_are_moved_to_the_device_asked_for():
    work = perfci.inference(lambda pair: pair[0], (Batch(), 3), device="cpu")
    assert work.call().place == torch.device("cpu")
    assert work.device == "cpu"


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # Inductor's own imports
def test_model_and_inputs_go_to_the_gpu_where_there_is_one():
    work = perfci.inference(model(), torch.ones(1, 8), mode="reduce-overhead")
    assert work.device == "cuda"
    work.call()
    assert work.call().device.type == "cuda"
    assert accuracy_loss(*work.accuracy()) < 1e5  # TF32 may be on


@pytest.mark.parametrize("mode", ["backend:eager", "aot_eager"])
def test_a_backend_compiles_modules_and_plain_functions(mode):
    network, x = model(), torch.randn(4, 8)
    for target in (network, lambda value: network(value) + 1, network.forward):
        torch._dynamo.reset()
        work = perfci.inference(target, x, mode=mode, device="cpu")
        assert work.compiled
        assert torch.allclose(work.call(), target(x).detach())
        assert work.call().is_inference()


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # Inductor's own imports
def test_inductor_runs_under_inference_mode_and_agrees_with_eager():
    torch._dynamo.reset()
    network, x = model(), torch.randn(4, 8)
    work = perfci.inference(network, x, mode="default", device="cpu")
    assert torch.allclose(work.call(), network(x).detach(), atol=1e-6)
    candidate, reference = work.accuracy()
    assert reference.dtype == torch.float64
    assert accuracy_loss(candidate, reference) < 10


def test_accuracy_compares_the_measured_output_with_float64():
    network, x = model(), torch.randn(4, 8)
    candidate, reference = perfci.inference(network, x, device="cpu").accuracy()
    assert (candidate.dtype, reference.dtype) == (torch.float32, torch.float64)
    assert 0 < accuracy_loss(candidate, reference) < 10
    assert next(network.parameters()).dtype == torch.float32


def test_accuracy_of_a_random_output_is_refused():
    work = perfci.inference(torch.nn.Dropout(), torch.ones(100), device="cpu")
    with pytest.raises(ValueError, match="two calls with the same inputs differ"):
        work.accuracy()


def test_eager_is_not_compiled_and_the_eager_backend_is():
    assert not perfci.inference(model(), torch.ones(1, 8), mode="eager", device="cpu").compiled
    assert perfci.inference(model(), torch.ones(1, 8), mode="backend:eager", device="cpu").compiled


def test_a_model_that_is_compiled_already_is_refused():
    assert (
        refused(torch.compile(model(), backend="eager"), torch.ones(1, 8)).slug
        == "already-compiled"
    )
    in_place = model()
    in_place.compile(backend="eager")
    assert refused(in_place, torch.ones(1, 8), mode="default").slug == "already-compiled"
    assert (
        refused(torch.compile(lambda x: x, backend="eager"), torch.ones(1)).slug
        == "already-compiled"
    )


class Tied(torch.nn.Module):
    """Asks a parameter for its type, and uses another module's."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.register_buffer("bias", torch.randn(16))

    def forward(self, tokens):
        hidden = (self.embedding(tokens) + self.bias).to(self.embedding.weight.dtype)
        return torch.nn.functional.linear(hidden, self.embedding.weight)


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (torch.nn.TransformerEncoderLayer(32, 4).eval(), torch.randn(3, 2, 32)),
        (torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).eval(),
         torch.randn(2, 3, 9, 9)),
        (torch.nn.LSTM(8, 16), torch.randn(3, 2, 8)),
        (torch.nn.Linear(8, 4, dtype=torch.bfloat16), torch.randn(2, 8, dtype=torch.bfloat16)),
        (Tied(), torch.randint(0, 50, (2, 5))),
    ],
    ids=["transformer", "convolution", "lstm", "bfloat16", "tied"],
)  # fmt: skip
def test_the_reference_of_a_large_model_is_that_of_a_copy(monkeypatch, model, x):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    copied = torch_models.float64_reference(model, [(x,)], {})
    monkeypatch.setattr(torch_models, "MOST_COPIED", 0)
    monkeypatch.setattr(torch_models, "float64_copy", None)
    large = torch_models.float64_reference(model, [(x,)], {})
    for one, other in zip(*map(tree_leaves, (copied, large)), strict=True):
        assert one.dtype == other.dtype == torch.float64
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-13)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
