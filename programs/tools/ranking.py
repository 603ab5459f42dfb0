"""Every metric, a line each, the preferred ones first.

If several tools follow a distortion equally well, the first is chosen. Full-reference metrics come before the others.

To use a single metric, import it from ``agenticiqa.programs.tools``.
"""

# ruff: noqa: I001 - the order is the rank
from agenticiqa.programs.tools.metrics.fr_fusion import fr_fusion as fr_fusion
from agenticiqa.programs.tools.metrics.haarpsi import haarpsi as haarpsi
from agenticiqa.programs.tools.metrics.fsim import fsim as fsim
from agenticiqa.programs.tools.metrics.mdsi import mdsi as mdsi
from agenticiqa.programs.tools.metrics.ssimulacra2 import ssimulacra2 as ssimulacra2
from agenticiqa.programs.tools.metrics.gmsd import gmsd as gmsd
from agenticiqa.programs.tools.metrics.deep_sim import deep_sim as deep_sim
from agenticiqa.programs.tools.metrics.vif import vif as vif
from agenticiqa.programs.tools.metrics.ms_ssim import ms_ssim as ms_ssim
from agenticiqa.programs.tools.metrics.ssim import ssim as ssim
from agenticiqa.programs.tools.metrics.psnr import psnr as psnr
from agenticiqa.programs.tools.metrics.learned_iqa import learned_iqa as learned_iqa
from agenticiqa.programs.tools.metrics.niqe import niqe as niqe
from agenticiqa.programs.tools.metrics.brisque import brisque as brisque
from agenticiqa.programs.tools.metrics.piqe import piqe as piqe
from agenticiqa.programs.tools.metrics.blur_extent import blur_extent as blur_extent
from agenticiqa.programs.tools.metrics.edge_sharpness import edge_sharpness as edge_sharpness
from agenticiqa.programs.tools.metrics.noise_sigma import noise_sigma as noise_sigma
from agenticiqa.programs.tools.metrics.blockiness import blockiness as blockiness
from agenticiqa.programs.tools.metrics.exposure_error import exposure_error as exposure_error
from agenticiqa.programs.tools.metrics.colorfulness import colorfulness as colorfulness
from agenticiqa.programs.tools.metrics.rms_contrast import rms_contrast as rms_contrast
