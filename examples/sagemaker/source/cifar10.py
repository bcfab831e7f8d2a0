"""Trains a small CNN on CIFAR-10's python layout, as a SageMaker training script does it: data
from SM_CHANNEL_TRAINING, hyperparameters as arguments, checkpoints in /opt/ml/checkpoints, the
model into SM_MODEL_DIR, metrics as printed lines."""

import argparse
import os
import pickle
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pictures


def load(root, *names):
    images, labels = [], []
    for name in names:
        with open(os.path.join(root, "cifar-10-batches-py", name), "rb") as file:
            batch = pickle.load(file)
        pixels = torch.frombuffer(bytearray(batch["data"]), dtype=torch.uint8)
        images.append(pixels.view(-1, 3, 32, 32))
        labels += batch["labels"]
    return TensorDataset(torch.cat(images).float() / 127.5 - 1, torch.tensor(labels))


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))


def evaluate(net, loader, criterion):
    net.eval()
    loss = right = count = 0
    with torch.no_grad():
        for inputs, labels in loader:
            outputs = net(inputs)
            loss += criterion(outputs, labels).item() * len(labels)
            right += (outputs.argmax(1) == labels).sum().item()
            count += len(labels)
    return loss / count, right / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--num-epochs", type=int, default=2)
    parser.add_argument("--learning-rate", type=float, default=0.003)
    parser.add_argument("--pause", type=float, default=0, help="seconds after each epoch")
    parser.add_argument("--checkpoints", default="/opt/ml/checkpoints")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # for so small a net, threads cost more than they bring
    dataroot = os.environ.get("SM_CHANNEL_TRAINING")
    if not dataroot:  # fit() without data
        dataroot = tempfile.mkdtemp()
        pictures.write(dataroot)
    trainset = load(dataroot, "data_batch_1", "data_batch_2")
    trainloader = DataLoader(trainset, args.batch_size, shuffle=True)
    testloader = DataLoader(load(dataroot, "test_batch"), 250)

    net = network()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=args.learning_rate)
    first = 0
    checkpoint = os.path.join(args.checkpoints, "last.pt")
    if os.path.exists(checkpoint):
        state = torch.load(checkpoint)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epochs"]
        print(f"goes on after epoch {first}", flush=True)

    for epoch in range(first + 1, args.num_epochs + 1):
        net.train()
        running_loss = 0.0
        for inputs, labels in trainloader:
            optimizer.zero_grad()
            loss = criterion(net(inputs), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        val_loss, accuracy = evaluate(net, testloader, criterion)
        print(f"Epoch {epoch}: Train Loss = {running_loss / len(trainloader):.4f}; "
              f"Val Loss = {val_loss:.4f}; Val Accuracy = {accuracy:.4f};", flush=True)
        if os.path.isdir(args.checkpoints):
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                        "epochs": epoch}, checkpoint + ".new")
            os.replace(checkpoint + ".new", checkpoint)
        time.sleep(args.pause)

    model_dir = os.environ.get("SM_MODEL_DIR", ".")
    torch.save(net.state_dict(), os.path.join(model_dir, "cifar_net.pth"))
    print("Finished Training", flush=True)


if __name__ == "__main__":
    main()
