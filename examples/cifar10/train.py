"""Trains a small CNN on CIFAR-10's python layout. Runs under Athanor and without it."""

import argparse
import os
import pickle

import torch
import torchvision
from torch import nn
from torchvision import transforms

import athanor
import athanor.torch


class LocalCIFAR10(torchvision.datasets.CIFAR10):
    """torchvision's own class checks fixed MD5 sums of the real files; ours are made."""

    def _check_integrity(self):
        return True

    def _load_meta(self):
        with open(os.path.join(self.root, self.base_folder, "batches.meta"), "rb") as meta:
            self.classes = pickle.load(meta)["label_names"]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(64 * 16, 10),
    )


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def save(path, step, accuracy, model, optimizer, loader):
    torch.save({"step": step, "accuracy": accuracy, "model": model.state_dict(),
                "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}, path)


def load(path, model, optimizer, loader):
    """The step to go on from, and the accuracy so far."""
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    loader.load_state_dict(state["loader"])
    return state["step"], state["accuracy"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.002)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--samples", type=int, default=0, help="of the training set; 0: all")
    parser.add_argument("--threads", type=int, default=0,
                        help="1 gives the same weights to the bit each time; 0: as many as CPUs")
    parser.add_argument("--data", default=os.environ.get("SM_CHANNEL_TRAIN", "data"))
    args = parser.parse_args()

    torch.manual_seed(0)
    if args.threads:
        torch.set_num_threads(args.threads)
    to_tensor = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])
    train_set = LocalCIFAR10(args.data, train=True, transform=to_tensor)
    test_set = LocalCIFAR10(args.data, train=False, transform=to_tensor)
    if args.samples:
        train_set = torch.utils.data.Subset(train_set, range(args.samples))
        test_set = torch.utils.data.Subset(test_set, range(args.samples))
    # The order depends on the seed and the epoch alone, wherever the run goes on.
    train = athanor.torch.ResumableLoader(torch.utils.data.DataLoader(
        train_set, args.batch_size, sampler=athanor.torch.ResumableSampler(train_set, seed=0)))
    test = torch.utils.data.DataLoader(test_set, 500)
    steps_per_epoch = len(train)
    steps = args.epochs * steps_per_epoch

    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_of = nn.CrossEntropyLoss()
    step, accuracy = 0, 0.0
    last = athanor.latest_checkpoint()
    if last:
        step, accuracy = load(last, model, optimizer, train)
        print(f"goes on from step {step}", flush=True)
    while step < steps:
        for images, labels in train:
            model.train()
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            step += 1
            athanor.log(loss=loss.item(), step=step)
            athanor.progress(step, steps)
            if step % steps_per_epoch == 0:  # before a save: what is saved was also measured
                accuracy = evaluate(model, test)
                athanor.log(accuracy=accuracy, step=step)
                print(f"epoch {step // steps_per_epoch}/{args.epochs}  loss {loss.item():.3f}  "
                      f"accuracy {accuracy:.3f}", flush=True)
            if athanor.should_checkpoint(step):
                athanor.checkpoint(
                    step, lambda path: save(path, step, accuracy, model, optimizer, train))
            if athanor.should_stop() and step < steps:
                return

    folder = os.environ.get("SM_MODEL_DIR", ".")
    torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
    print(f"final accuracy {accuracy:.3f} (chance is 0.100)")
    athanor.done()


if __name__ == "__main__":
    main()
