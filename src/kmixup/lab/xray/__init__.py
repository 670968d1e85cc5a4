"""An X-ray of a data set of the lab: `kmixup.inspect` on it, in words and as one page.

`examine` draws samples and inspects them, `show` prints the result, `write` writes the page.
"""

from kmixup.lab.xray.examining import Xray, examine
from kmixup.lab.xray.page import write
from kmixup.lab.xray.terminal import show

__all__ = ["Xray", "examine", "show", "write"]
