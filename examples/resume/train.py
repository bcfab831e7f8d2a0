"""A training that can be interrupted at any step and ends as if it had not been.

    ath run examples/resume/job.yaml --preempt-every 4s±2s --seed 7
    ath run examples/resume/job.yaml -p poison=30        # then: ath replay @last

Each sample is visited exactly once per epoch, in an order that depends on (seed, epoch) only; the
data's state is one integer beside the weights. A poisoned sample makes the loss NaN, the rule of
the job file stops the job, and `ath replay` runs that step again.
"""

import time

import torch
from torch.utils.data import DataLoader, TensorDataset

import athanor
import athanor.torch


def make_data(samples):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(samples, 8, generator=generator)
    return TensorDataset(x, x @ torch.arange(8.0).unsqueeze(1) + 0.5)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    epochs = athanor.params.get("epochs", 3)
    poison = athanor.params.get("poison", -1)
    data = make_data(athanor.params.get("samples", 1024))
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=athanor.params.get("lr", 0.02))
    sampler = athanor.torch.ResumableSampler(data, seed=7)
    loader = athanor.torch.ResumableLoader(DataLoader(data, batch_size=32, sampler=sampler))
    step = 0

    if path := athanor.latest_checkpoint():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["data"])
        step = saved["step"]
        print("resumed at step", step, flush=True)

    def save(path):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "data": loader.state_dict(), "step": step}, path)

    total = epochs * -(-len(data) // 32)  # of all attempts together
    for _ in range(loader.epoch, epochs):
        for batch in loader:
            if step == poison:
                batch = [batch[0] / 0, batch[1]]
            # First thing in the step: what it works on, should it have to run again.
            x, y = athanor.capture(step, batch=batch, model=model, optimizer=optimizer)
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            athanor.log(loss=loss.item(), step=step)
            step += 1
            athanor.progress(step, total)
            time.sleep(athanor.params.get("pause", 0.1))  # a larger model's time
            if athanor.should_checkpoint(step):
                athanor.checkpoint(step, save)
            if athanor.should_stop():
                return
    print("final loss %.6f after %d steps" % (loss.item(), step))
    athanor.done()


if __name__ == "__main__":
    main()
