import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import perfci  # noqa: E402
from tests.metrics.test_accuracy import accuracy_loss  # noqa: E402


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)
    )


def batch():
    torch.manual_seed(1)
    return torch.randn(16, 8), torch.randn(16, 2)


@pytest.mark.parametrize("mode", ["eager", "aot_eager"])
def test_steps_lower_the_loss(mode):
    torch._dynamo.reset()
    x, y = batch()
    work = perfci.training_step(
        model(),
        x,
        y,
        loss=torch.nn.functional.mse_loss,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        mode=mode,
        items=16,
    )
    first = float(work.call())
    for _ in range(20):
        last = work.call()
    assert float(last) < first
    assert not last.requires_grad


def test_every_mode_takes_the_same_steps():
    ends = []
    for mode in ("eager", "aot_eager"):
        torch._dynamo.reset()
        network, (x, y) = model(), batch()
        work = perfci.training_step(
            network, x, y, loss=torch.nn.functional.mse_loss, mode=mode, device="cpu"
        )
        for _ in range(3):
            work.call()
        ends.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    assert torch.allclose(*ends, atol=1e-6)


@pytest.mark.parametrize("mode", ["eager", "aot_eager"])
def test_accuracy_is_of_loss_and_gradients_at_the_first_step(mode):
    torch._dynamo.reset()
    network, (x, y) = model(), batch()
    start = {name: value.clone() for name, value in network.state_dict().items()}
    work = perfci.training_step(network, x, y, loss=torch.nn.MSELoss(), mode=mode, device="cpu")
    first = work.call()
    for _ in range(5):
        work.call()
    trained = {name: value.clone() for name, value in network.state_dict().items()}
    candidate, reference = work.accuracy()
    assert float(candidate["loss"]) == pytest.approx(float(first), rel=1e-6)
    assert set(candidate["gradients"]) == {name for name, _ in network.named_parameters()}
    assert reference["loss"].dtype == torch.float64
    assert 0 < accuracy_loss(candidate, reference) < 100
    after = network.state_dict()
    assert all(torch.equal(after[name], trained[name]) for name in trained)
    assert not all(torch.equal(after[name], start[name]) for name in start)
    work.call()


def test_accuracy_of_a_step_with_dropout_is_refused():
    network = torch.nn.Sequential(torch.nn.Linear(8, 2), torch.nn.Dropout())
    x, y = batch()
    work = perfci.training_step(network, x, y, loss=torch.nn.functional.mse_loss)
    with pytest.raises(ValueError, match="two calls with the same inputs differ"):
        work.accuracy()
    work.call()
