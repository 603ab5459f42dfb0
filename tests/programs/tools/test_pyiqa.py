"""Metrics of pyiqa: this package's code with a fake pyiqa, and some tests with the real one."""

import json
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS, run_tool, toolbox
from agenticiqa.programs.tools.measuring import measure
from agenticiqa.programs.tools.pyiqa import load_metric, pyiqa_tool
from agenticiqa.programs.tools.tool_curves import read_tool_curves
from agenticiqa.signatures.categories import OVERALL
from support.distortion_levels import scene
from support.images import loaded

METRICS = {
    "topiq_fr": {"metric_mode": "FR", "score_range": "~0, ~1"},
    "brightness": {"metric_mode": "NR", "score_range": "0, ~1"},
    "darkness": {"metric_mode": "NR", "lower_better": True, "score_range": "~-1, 0"},
    "difference": {"metric_mode": "FR", "score_range": "-1, 1"},
    "tres": {"metric_mode": "NR", "score_range": "~0, ~100"},
    "mad": {"metric_mode": "FR", "lower_better": True, "score_range": "0, ~"},
    "fgresq_pair": {"metric_mode": "FR", "score_range": "quality: 0, 1; rank: 0, 2"},
    "musiq": {"metric_mode": "NR", "score_range": "~0, ~100"},
    "ssim": {"metric_mode": "FR", "score_range": "0, 1"},
    "ms_ssim": {"metric_mode": "FR", "score_range": "0, 1"},
}


class Tensor:
    """The used part of torch's tensor: pixels that can be permuted, and given a leading axis."""

    def __init__(self, array):
        self.array = array

    def permute(self, *axes):
        return Tensor(self.array.transpose(axes))

    def __getitem__(self, key):
        return Tensor(self.array[key])


def create_metric(name, device):
    assert device == "cpu"
    if name == "musiq":
        raise OSError("Name or service\nnot known")
    print(f'Downloading: "{name}"')

    def metric(image, reference=None):
        for tensor in (image, reference):
            if tensor is not None:
                batch, channels, *_ = tensor.array.shape
                assert (batch, channels) == (1, 3)
                assert tensor.array.dtype == np.float32
                assert 0 <= tensor.array.min() <= tensor.array.max() <= 1
        sign = -1 if name == "darkness" else 1
        return sign * (image.array.mean() - (0 if reference is None else reference.array.mean()))

    return metric


@pytest.fixture
def stand_in(monkeypatch):
    pyiqa, configs, torch = ModuleType("pyiqa"), ModuleType("pyiqa.default_model_configs"), ModuleType("torch")
    configs.DEFAULT_CONFIGS = METRICS
    pyiqa.default_model_configs, pyiqa.create_metric = configs, create_metric
    torch.from_numpy = Tensor
    for module in (pyiqa, configs, torch):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    load_metric.cache_clear()
    yield
    load_metric.cache_clear()


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("pyiqa: [brightness, difference]")
    return str(path)


def gray(level):
    return np.full((16, 24, 3), level, dtype=np.uint8)


def test_without_pyiqa_one_line_says_how_to_install_it_and_under_which_licence(monkeypatch, config, capsys):
    monkeypatch.setitem(sys.modules, "pyiqa", None)
    with pytest.raises(ToolError, match=r'not installed: pip install "agenticiqa\[pyiqa\]" \(PolyForm Noncommercial'):
        toolbox(pyiqa=["musiq"])
    assert main(["tools", "--config", config]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1


def test_a_broken_pyiqa_is_not_reported_as_missing(monkeypatch, tmp_path):
    (tmp_path / "pyiqa").mkdir()
    (tmp_path / "pyiqa" / "__init__.py").write_text("import a_package_that_is_nowhere")
    for name in [name for name in sys.modules if name.split(".")[0] == "pyiqa"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolError, match=r"installed but cannot be imported: .*a_package_that_is_nowhere"):
        toolbox(pyiqa=["musiq"])


def test_pyiqa_is_imported_only_when_a_metric_is_used():
    code = (
        "import sys, agenticiqa.programs, agenticiqa.programs.tools.pyiqa as cards\n"
        "agenticiqa.programs.tools.toolbox()\n"
        "print({'pyiqa', 'torch', 'torchvision'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.usefixtures("stand_in")
def test_added_metrics_come_first_and_use_the_curve_of_their_name():
    assert list(toolbox(pyiqa=["brightness", "topiq_fr"])) == ["brightness", "topiq_fr", *TOOLS]
    assert pyiqa_tool("topiq_fr", "table5").curve == read_tool_curves("table5")["topiq_fr"]
    assert "linear" in pyiqa_tool("topiq_fr", "default").curve.fitted_on
    with pytest.raises(ToolError, match="tres is not monotone"):
        toolbox("table5", pyiqa=["tres"])
    with pytest.raises(ToolError, match=r"no metric 'TOPIQ'; it has brightness, .*topiq_fr"):
        toolbox(pyiqa=["TOPIQ"])


@pytest.mark.usefixtures("stand_in")
def test_a_metric_without_a_finite_range_is_measured_by_its_name(tmp_path, capsys):
    image, reference = str(tmp_path / "a.png"), str(tmp_path / "b.png")
    Image.fromarray(gray(51)).save(image)
    Image.fromarray(gray(0)).save(reference)
    assert measure("pyiqa:mad", gray(51), gray(0)) == pytest.approx(0.2)
    assert main(["measure", "pyiqa:MAD,pyiqa:brightness", image, "--reference", reference, "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert [row["pyiqa:mad"], row["pyiqa:brightness"]] == pytest.approx([0.2, 0.2])


def test_measuring_a_pyiqa_metric_needs_pyiqa(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyiqa", None)
    assert main(["measure", "pyiqa:lpips", "a.png"]) == 2
    assert 'pip install "agenticiqa[pyiqa]"' in capsys.readouterr().err


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(("name", "embedded"), [("ssim", "SSIM"), ("ms_ssim", "MS-SSIM"), ("SSIM", "SSIM")])
def test_the_name_of_an_embedded_metric_in_any_case_is_refused(name, embedded):
    with pytest.raises(ToolError, match=f"'{name}' is already built in as {embedded}; remove it"):
        toolbox(pyiqa=[name])
    with pytest.raises(ToolError, match="already built in"):
        toolbox("table5", pyiqa=["brisque"])


@pytest.mark.usefixtures("stand_in")
def test_a_metric_sees_the_image_and_then_the_reference_as_batches_between_0_and_1():
    tools = toolbox(pyiqa=["brightness", "difference"])
    alone = run_tool(tools["brightness"], loaded(gray(51)), None, region="Global", distortion=OVERALL)
    assert (alone.error, alone.raw) == (None, pytest.approx(0.2))
    paired = run_tool(tools["difference"], loaded(gray(51)), loaded(gray(255)), region="Global", distortion=OVERALL)
    assert (paired.error, paired.raw) == (None, pytest.approx(-0.8))
    orphan = run_tool(tools["difference"], loaded(gray(51)), None, region="Global", distortion=OVERALL)
    assert "reference" in orphan.error


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(("name", "worst", "best"), [("brightness", 0, 1), ("darkness", 0, -1), ("difference", -1, 1)])
def test_without_a_curve_the_stated_range_is_mapped_linearly_in_the_metrics_direction(name, worst, best):
    tool = pyiqa_tool(name, "default")
    assert tool.higher_is_better == (best > worst)
    assert tool.raw_range == (min(worst, best), max(worst, best))
    assert [tool.curve(raw) for raw in (worst, (worst + best) / 2, best)] == pytest.approx([1, 3, 5])
    assert "linear" in tool.curve.fitted_on


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("name", ["mad", "fgresq_pair"])
def test_a_metric_without_curve_and_finite_range_is_refused_unless_a_file_has_it(name, tmp_path):
    with pytest.raises(ToolError, match=f"{name} has no curve in the tool curves 'default' and no finite range"):
        toolbox(pyiqa=[name])
    curves = tmp_path / "mine.yaml"
    curves.write_text(f"tools: {{{name}: {{betas: [0, 0, 0, -0.02, 5], raw_range: [0, 200], fitted_on: by hand}}}}")
    assert toolbox(str(curves), pyiqa=[name])[name].curve(100) == pytest.approx(3)


@pytest.mark.usefixtures("stand_in")
def test_a_failed_download_of_weights_is_reported_in_one_line_before_the_first_image():
    with pytest.raises(ToolError, match="cannot create its metric musiq: OSError: Name or service not known"):
        AgenticIQA.from_config(Config(pyiqa=["musiq"]))


@pytest.mark.usefixtures("stand_in")
def test_the_listing_is_strict_json_although_pyiqa_prints_to_stdout(config, capsys):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert main(["tools", "--json", "--config", config]) == 0
    said = capsys.readouterr()
    rows = {row["name"]: row for row in json.loads(said.out, parse_constant=refuse)}
    assert rows["difference"]["kind"] == "FR"
    assert rows["difference"]["raw_range"] == [-1, 1]
    assert rows["difference"]["cost_ms"] is None
    assert rows["difference"]["status"] == "ready"
    assert "Noncommercial" in rows["difference"]["source"]
    assert "Downloading" in said.err
    assert main(["tools", "--config", config]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "brightness" in line)
    assert "0 .. 1" in row
    assert "nan" not in row.lower()


@pytest.mark.usefixtures("stand_in")
def test_a_question_may_name_an_added_metric(examples):
    program = AgenticIQA.from_config(Config(pyiqa=["brightness"]))
    call = program(examples / "coffee.webp", query="How good is this image? Use the brightness metric.")
    row = call.executor_evidence.tool_log[0]  # the program's own tool runs as well, for comparison
    assert (row.tool, row.error) == ("brightness", None)
    assert 0 < row.raw < 1


@pytest.fixture(scope="module")
def real():
    if find_spec("pyiqa") is None:
        pytest.skip("pyiqa is not installed (optional, PolyForm Noncommercial license)")
    load_metric.cache_clear()
    return lambda name, curves="default": pyiqa_tool(name, curves)


def test_vif_and_ssim_of_pyiqa_agree_with_the_embedded_ones(real):
    image, reference = scene(192, 256) // 2 + 40, scene(192, 256)
    for name, own in (("vif", "VIF"), ("ssim", "SSIM")):
        theirs = run_tool(real(name), loaded(image), loaded(reference), region="Global", distortion=OVERALL)
        assert (theirs.error, theirs.raw) == (None, pytest.approx(TOOLS[own].measure(image, reference), abs=1e-3))


@pytest.mark.parametrize("name", ["psnry", "ssimc", "vsi", "cw_ssim"])
def test_pyiqa_rates_an_undistorted_image_above_a_distorted_one(real, name):
    tool, image = real(name), scene(192, 256)
    noise = np.random.default_rng(0).integers(0, 256, image.shape, dtype=np.uint8)
    pristine = run_tool(tool, loaded(image), loaded(image), region="Global", distortion=OVERALL)
    wrecked = run_tool(tool, loaded(noise), loaded(image), region="Global", distortion=OVERALL)
    assert pristine.error is wrecked.error is None
    assert pristine.calibrated == pytest.approx(5, abs=0.01)
    assert wrecked.calibrated < pristine.calibrated


def test_table_5_has_metrics_of_pyiqa_in_their_direction(real):
    from pyiqa.default_model_configs import DEFAULT_CONFIGS

    for name, curve in read_tool_curves("table5").items():
        if name not in TOOLS and curve.is_monotone():
            low, high = map(curve, curve.raw_range)
            assert (low > high) == DEFAULT_CONFIGS[name].get("lower_better", False), name
