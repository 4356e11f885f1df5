"""A network that learns images: `train.py [--workers N]`. The images come from torchvision's transforms."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--steps", type=int, default=40)
given = parser.parse_args()

augment = transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.ColorJitter(0.2, 0.2),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
])  # fmt: skip
images = datasets.FakeData(32 * (given.steps + 4), (3, 320, 320), 10, augment)
workers = {"num_workers": given.workers, "persistent_workers": True, "prefetch_factor": 4} if given.workers else {}
loader = DataLoader(images, batch_size=32, pin_memory=True, **workers)
model = models.resnet50(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
loss_of = nn.CrossEntropyLoss()

start, step = 0.0, 0
for step, (image, label) in enumerate(loader):
    if step == 4:
        torch.cuda.synchronize()
        start = time.perf_counter()
    with torch.autocast("cuda", torch.bfloat16):
        loss = loss_of(model(image.cuda(non_blocking=True)), label.cuda(non_blocking=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
print(f"{1e3 * (time.perf_counter() - start) / (step - 3):.2f} ms a step")
