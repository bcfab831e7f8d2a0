"""Makes a 10-class data set in CIFAR-10's python layout, in data/ beside this file.

Real CIFAR-10 cannot be downloaded everywhere; these 32x32 pictures are drawn: each
class is a shape with a colour of its own, placed, turned and lit at random over
noise. The files have the names, pickles and shapes of the real ones.
"""

import os
import pickle

import numpy as np

CLASSES = ["disc", "ring", "square", "frame", "cross", "plus", "stripes", "columns", "wedge", "dots"]


def draw(label, random):
    y, x = np.mgrid[0:32, 0:32].astype(np.float32)
    cx, cy = 16 + random.uniform(-5, 5, 2)
    angle, r = random.uniform(0, np.pi), random.uniform(6, 11)
    dx, dy = x - cx, y - cy
    u, v = dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)
    d, box = np.hypot(dx, dy), np.maximum(abs(u), abs(v))
    inside = box < r
    mask = [
        d < r,
        (d < r) & (d > r * 0.6),
        inside,
        inside & (box > r * 0.6),
        inside & (abs(abs(u) - abs(v)) < r * 0.3),
        inside & (np.minimum(abs(u), abs(v)) < r * 0.25),
        inside & (np.sin(u * 1.6) > 0),
        inside & (np.sin(u * 0.8) > 0),
        inside & (u > v),
        inside & (np.sin(u * 1.4) * np.sin(v * 1.4) > 0.2),
    ][label]
    ground, ink = random.uniform(0, 120, 3), random.uniform(110, 255, 3)
    image = np.where(mask[None], ink[:, None, None], ground[:, None, None])
    image = image + random.normal(0, 18, (3, 32, 32))
    return np.clip(image, 0, 255).astype(np.uint8).reshape(-1)


def batch(count, random):
    labels = [int(i) for i in random.integers(0, 10, count)]
    return {"data": np.stack([draw(label, random) for label in labels]), "labels": labels}


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "cifar-10-batches-py")
    os.makedirs(folder, exist_ok=True)
    random = np.random.default_rng(7)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        with open(os.path.join(folder, name), "wb") as out:
            pickle.dump(batch(2000, random), out)
    with open(os.path.join(folder, "batches.meta"), "wb") as out:
        pickle.dump({"label_names": CLASSES}, out)


if __name__ == "__main__":
    main()
