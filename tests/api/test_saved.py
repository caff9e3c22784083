import contextlib
import os
import warnings
import zipfile

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from perfci.api.saved import saved_work  # noqa: E402
from perfci.errors import BenchmarkError  # noqa: E402
from perfci.metrics.accuracy import accuracy_loss  # noqa: E402
from perfci.model.worker import SavedModel  # noqa: E402


class Touch:
    """Its unpickling leaves a folder behind: the proof that code ran."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout())


@pytest.fixture
def x():
    return torch.ones(2, 4)


def exported(tmp_path, network, x):
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(network.eval(), (x,)), path)
    return path


def work_of(tmp_path, model_path, inputs, mode="eager", **options):
    inputs_path = tmp_path / "inputs.pt"
    torch.save(inputs, inputs_path)
    saved = SavedModel("tiny", str(model_path), str(inputs_path), items=2, **options)
    return saved_work(saved, mode)


def refused(tmp_path, model_path, inputs, **options):
    with pytest.raises(BenchmarkError) as caught:
        work_of(tmp_path, model_path, inputs, **options)
    assert caught.value.message.startswith(str(tmp_path))
    assert caught.value.advice
    return caught.value


def test_an_exported_program_is_measured(tmp_path, network, x):
    work = work_of(tmp_path, exported(tmp_path, network, x), x)
    assert torch.allclose(work.call().cpu(), network(x).detach())
    assert work.items == 2
    candidate, reference = work.accuracy()
    assert accuracy_loss(candidate, reference) < 10


def test_an_exported_program_can_be_compiled(tmp_path, network, x):
    torch._dynamo.reset()
    work = work_of(tmp_path, exported(tmp_path, network, x), (x,), mode="aot_eager")
    assert torch.allclose(work.call().cpu(), network(x).detach())


def test_torchscript_is_measured_in_eager_and_not_compiled(tmp_path, network, x):
    path = tmp_path / "model.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(network.eval(), x).save(path)
    work = work_of(tmp_path, path, x)
    assert torch.allclose(work.call().cpu(), network(x).detach())
    assert refused(tmp_path, path, x, mode="aot_eager").slug == "torchscript-not-compilable"


def test_inputs_by_name_are_keyword_inputs(tmp_path, network, x):
    path = tmp_path / "named.pt2"
    torch.export.save(torch.export.export(network[0], (), {"input": x}), path)
    assert work_of(tmp_path, path, {"input": x}).call().shape == (2, 4)


def test_a_pickled_module_needs_the_users_word(tmp_path, network, x):
    path = tmp_path / "model.pt"
    torch.save(network, path)
    error = refused(tmp_path, path, x)
    assert error.slug == "saved-needs-unpickling"
    assert "torch.export.save" in error.advice
    assert "allow_pickle = true" in error.advice
    work = work_of(tmp_path, path, x, allow_pickle=True)
    assert torch.allclose(work.call().cpu(), network.eval()(x).detach())


@pytest.mark.parametrize("variable", [None, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_malicious_model_runs_no_code(tmp_path, x, zipped, variable, monkeypatch):
    if variable:
        monkeypatch.setenv(variable, "1")
    path, touched = tmp_path / "model.pt", tmp_path / "touched"
    torch.save(Touch(touched), path, _use_new_zipfile_serialization=zipped)
    assert refused(tmp_path, path, x).slug == "saved-needs-unpickling"
    assert not touched.exists()


def test_malicious_inputs_run_no_code_even_where_the_model_may(tmp_path, network, x):
    touched = tmp_path / "touched"
    error = refused(tmp_path, exported(tmp_path, network, x), Touch(touched), allow_pickle=True)
    assert error.slug == "saved-inputs-unreadable"
    assert not touched.exists()


def test_a_pickle_hidden_in_an_exported_program_runs_no_code(tmp_path, network, x):
    honest, path, touched = exported(tmp_path, network, x), tmp_path / "evil.pt2", tmp_path / "t"
    torch.save((Touch(touched), {}), tmp_path / "evil.pkl")
    with zipfile.ZipFile(honest) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            hidden = name.endswith("data/sample_inputs/model.pt")
            data = (tmp_path / "evil.pkl").read_bytes() if hidden else source.read(name)
            target.writestr(name, data)
    error = refused(tmp_path, path, x)
    assert error.slug == "saved-needs-unpickling"
    assert "sample_inputs" in error.message
    assert not touched.exists()
    # With the user's word torch does run it: so this test would see it.
    with contextlib.suppress(BenchmarkError):
        work_of(tmp_path, path, x, allow_pickle=True)
    assert touched.exists()


def test_weights_alone_are_no_model(tmp_path, network, x):
    path = tmp_path / "weights.pt"
    torch.save(network.state_dict(), path)
    assert refused(tmp_path, path, x).slug == "saved-weights-alone"
    assert refused(tmp_path, path, x, allow_pickle=True).slug == "saved-weights-alone"


def test_a_missing_file_is_named(tmp_path, network, x):
    assert refused(tmp_path, tmp_path / "none.pt2", x).slug == "saved-file-missing"
    model = exported(tmp_path, network, x)
    with pytest.raises(BenchmarkError, match=r"gone\.pt: there is no such file"):
        saved_work(SavedModel("tiny", str(model), str(tmp_path / "gone.pt")), "eager")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x02broken", b"PK\x03\x04broken"])
def test_what_is_no_model_is_refused(tmp_path, x, content):
    path = tmp_path / "model.pt2"
    path.write_bytes(content)
    assert refused(tmp_path, path, x).slug in {"saved-not-a-model", "saved-needs-unpickling"}


def test_a_truncated_program_is_refused(tmp_path, network, x):
    path = exported(tmp_path, network, x)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(tmp_path / "cut.pt2", "w") as target:
        for name in source.namelist():
            if not name.endswith("models/model.json"):
                target.writestr(name, source.read(name))
    assert refused(tmp_path, tmp_path / "cut.pt2", x).slug == "saved-model-unreadable"


@pytest.mark.parametrize("inputs", ["text", 3, {"x": 3}, [torch.ones(1), 2], {1: torch.ones(1)}])
def test_inputs_that_are_not_tensors_are_refused(tmp_path, network, x, inputs):
    model = exported(tmp_path, network, x)
    assert refused(tmp_path, model, inputs).slug == "saved-inputs-not-tensors"


def test_an_unknown_mode_names_the_file(tmp_path, network, x):
    model = exported(tmp_path, network, x)
    assert refused(tmp_path, model, x, mode="defalt").slug == "unknown-mode"
