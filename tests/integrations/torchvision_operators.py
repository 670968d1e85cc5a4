"""Makes `import torchvision` work where its compiled part does not load.

The wheel of PyPI is compiled against torch with CUDA. Beside torch for the CPU alone its
library does not load, and then `import torchvision` fails: it describes two operators that
the library would have defined. The transforms, models and data sets are Python and need
neither operator. lightning, torchmetrics, timm and transformers import torchvision as well.
"""

from importlib.util import find_spec
from pathlib import Path

import torch

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
# a library undefines its operators when it is collected
LIBRARIES: list[torch.library.Library] = []


def define_missing() -> None:
    """Define the two operators, without an implementation, if torchvision cannot."""
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None or hasattr(torch.ops.torchvision, "nms"):
        return
    try:
        for compiled in Path(spec.origin).parent.glob("_C*"):
            torch.ops.load_library(compiled)
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(name + SCHEMA)
        LIBRARIES.append(library)
