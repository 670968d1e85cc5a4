"""Importance of pixels, such as the gradient of a network's loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kmixup._networks import evaluating
from kmixup.targets import Criterion


def saliency(
    net: nn.Module, x: Tensor, y: Any, *, criterion: Criterion = F.cross_entropy
) -> Tensor:
    """Return the saliency of every pixel: √ of the mean over channels of (∂loss/∂x)².

    This costs one forward and one backward pass in `.eval()` mode. Module modes and
    gradients are left unchanged.

    Args:
        net: the network.
        x: images `(n, channels, height, width)`.
        y: their targets.
        criterion: the loss, of the network's outputs and `y`.

    Returns:
        Saliency `(n, height, width)`, in float32 or wider.

    Raises:
        TypeError: if `x` is not a tensor of floating-point images.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> saliency(net, torch.randn(5, 1, 8, 8), torch.randint(10, (5,))).shape
    torch.Size([5, 8, 8])
    """
    _check_images(x, "saliency")
    if not x.is_floating_point():
        raise TypeError(f"saliency needs floating-point images, got {x.dtype}: use x.float() / 255")
    with evaluating(net), torch.enable_grad():
        image = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(criterion(net(image.clone()), y).sum(), image)
    dtype = torch.promote_types(x.dtype, torch.float32)
    channels = tuple(range(1, x.dim() - 2))
    return gradient.to(dtype).square().mean(channels).sqrt()


def spectral_residual(x: Tensor) -> Tensor:
    """Return the saliency of every pixel without a network, by the spectral residual.

    Hou and Zhang (2007): the log amplitude spectrum minus its local mean, transformed back with the
    original phase, squared and blurred.

    Args:
        x: images `(n, channels, height, width)`, averaged over channels and seen at 64 x 64 pixels
            at most.

    Returns:
        Saliency `(n, height, width)`.

    Raises:
        TypeError: if `x` is not a tensor of images.

    >>> x = torch.zeros(1, 3, 32, 32)
    >>> x[:, :, 20:23, 8:11] = 1    # a small square
    >>> divmod(int(spectral_residual(x).argmax()), 32)
    (21, 9)
    """
    _check_images(x, "spectral_residual")
    size = x.shape[-2:]
    seen = min(size[0], 64), min(size[1], 64)
    grey = x.detach().to(torch.promote_types(x.dtype, torch.float32)).flatten(1, -3).mean(1)
    if seen != size:
        grey = F.adaptive_avg_pool2d(grey, seen)
    spectrum = torch.fft.fft2(grey)
    log = spectrum.abs().clamp(min=1e-12).log()
    mean = F.avg_pool2d(F.pad(log, (1, 1, 1, 1), mode="circular"), 3, stride=1)
    # the amplitude exp(log - mean) with the phase of the spectrum
    pixels = blur(torch.fft.ifft2(spectrum * (-mean).exp()).abs().square(), 5, 8.0)
    if seen != size:
        pixels = F.interpolate(pixels.unsqueeze(1), size, mode="bilinear").squeeze(1)
    return pixels


def _check_images(x: object, function: str) -> None:
    if not isinstance(x, Tensor) or x.dim() < 4:
        got = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(
            f"{function} needs a tensor of images (n, channels, height, width), got {got}: take it "
            "out of a nest; grey images are x[:, None]"
        )


def blur(pixels: Tensor, size: int, sigma: float) -> Tensor:
    """Return `pixels` `(n, height, width)` convolved with a Gaussian of `size` x `size` pixels."""
    pixels = pixels.to(torch.promote_types(pixels.dtype, torch.float32))  # may be integers
    reach = size // 2
    kernel = (-torch.arange(-reach, reach + 1).double().square() / (2 * sigma**2)).exp()
    kernel = (kernel / kernel.sum()).to(pixels)
    mode = "reflect" if min(pixels.shape[1:]) > reach else "replicate"
    rows = F.conv2d(F.pad(pixels.unsqueeze(1), (reach,) * 4, mode=mode), kernel.view(1, 1, -1, 1))
    return F.conv2d(rows, kernel.view(1, 1, 1, -1)).squeeze(1)
