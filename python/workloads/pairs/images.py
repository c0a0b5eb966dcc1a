"""Networks for images, from torchvision and timm."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .case import Case, case, classified, labels


def _pictures(side: int, classes: int):
    return lambda batch: (torch.randn(batch, 3, side, side), labels(classes, batch))


def _torchvision(name: str, side: int = 64, optimizer: str = "momentum", blocks: Sequence[str] = (), classes: int = 100, **options: Any) -> Case:
    import torchvision

    model = torchvision.models.get_model(name, weights=None, num_classes=classes, **options)
    return Case(model, classified, _pictures(side, classes), optimizer, blocks)


def _timm(name: str, side: int = 64, optimizer: str = "adamw", blocks: Sequence[str] = (), classes: int = 100, **options: Any) -> Case:
    import timm

    model = timm.create_model(name, pretrained=False, num_classes=classes, **options)
    return Case(model, classified, _pictures(side, classes), optimizer, blocks)


@case(batch=16, images=True, removed={"module:*.relu": ["relu", "layer*.*.relu"]})
def resnet18() -> Case:
    return _torchvision("resnet18", blocks=["layer*.*"])


@case(batch=8, images=True)
def resnet50() -> Case:
    return _torchvision("resnet50", blocks=["layer*.*"])


@case(batch=8, images=True, removed={"aten::dropout_": ["classifier.2"]})
def mobilenet_v3_small() -> Case:
    return _torchvision("mobilenet_v3_small", blocks=["features.*"])


@case(batch=8, images=True, removed={"aten::dropout": ["classifier.0"]})
def mobilenet_v2() -> Case:
    return _torchvision("mobilenet_v2", blocks=["features.*"])


@case(batch=8, images=True)
def densenet121() -> Case:
    return _torchvision("densenet121")


@case(batch=8, images=True, removed={"aten::dropout": ["classifier.2", "classifier.5"]})
def vgg11() -> Case:
    return _torchvision("vgg11_bn", optimizer="sgd", side=32)


@case(batch=16, images=True, removed={"aten::dropout": ["classifier.0"]})
def squeezenet() -> Case:
    return _torchvision("squeezenet1_1", optimizer="sgd", side=96)


@case(batch=8, images=True)
def shufflenet() -> Case:
    return _torchvision("shufflenet_v2_x0_5")


@case(batch=8, images=True)
def regnet() -> Case:
    return _torchvision("regnet_y_400mf", blocks=["trunk_output.*.*"])


@case(batch=8, images=True)
def swin() -> Case:
    return _torchvision("swin_t", optimizer="adamw", blocks=["features.1.*", "features.3.*", "features.5.*", "features.7.*"])


@case(batch=8, images=True)
def convnext() -> Case:
    return _timm("convnext_atto", blocks=["stages.*.blocks.*"])


@case(batch=8, images=True)
def efficientnet() -> Case:
    return _timm("efficientnet_lite0", optimizer="momentum", blocks=["blocks.*.*"])


@case(batch=16, images=True, removed={"module:*.norm1": ["blocks.*.norm1"]})
def vit() -> Case:
    return _timm("vit_tiny_patch16_224", img_size=64, patch_size=8, depth=6, blocks=["blocks.*"])


@case(batch=16, images=True)
def mixer() -> Case:
    return _timm("mixer_s32_224", side=224, num_blocks=4, blocks=["blocks.*"])


@case(batch=8, images=True)
def deit_distilled() -> Case:
    return _timm("vit_tiny_patch16_224", img_size=96, patch_size=16, depth=4, drop_rate=0.1, blocks=["blocks.*"])


@case(batch=8, images=True)
def resmlp() -> Case:
    return _timm("resmlp_12_224", img_size=64, blocks=["blocks.*"])


@case(batch=8, images=True)
def ghostnet() -> Case:
    return _timm("ghostnet_050", optimizer="momentum")


@case(batch=4, images=True)
def segmentation() -> Case:
    """Segmentation: a score for each class at each pixel."""
    import torchvision

    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=8)

    def loss(net, images, classes):
        return torch.nn.functional.cross_entropy(net(images)["out"], classes)

    return Case(model, loss, lambda batch: (torch.randn(batch, 3, 96, 96), labels(8, batch, 96, 96)), "momentum")
