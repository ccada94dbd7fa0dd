"""Safetensors files written and read by hand: the Python package of that name lacks F8_E8M0 in some releases, and a second reader of
the bytes is worth having. Layout: 8 bytes little-endian header length, JSON header, data; the tensors cover the data exactly."""
import json
import struct
from pathlib import Path

import numpy as np

ITEM = {"F32": np.float32, "I64": np.int64, "BF16": np.uint16, "F8_E4M3": np.uint8, "F8_E8M0": np.uint8, "U8": np.uint8}


def write(path, tensors, metadata=None):
    """tensors: name -> (dtype name, array of the item type in ITEM). In the given order, without holes."""
    header, position = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, array) in tensors.items():
        assert array.dtype == ITEM[dtype], (name, dtype, array.dtype)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [position, position + array.nbytes]}
        position += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, array in tensors.values():
            out.write(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def read(path):
    """name -> (dtype name, array). Refuses holes, overlaps and trailing bytes."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    end, tensors = 0, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        item = np.dtype(ITEM[entry["dtype"]]).newbyteorder("<")
        if first != end or last - first != item.itemsize * int(np.prod(entry["shape"])):
            raise ValueError(f"{path}: {name}: bytes {first} to {last}, expected from {end}, shape {entry['shape']}")
        raw = data[8 + length + first : 8 + length + last]
        tensors[name] = (entry["dtype"], np.frombuffer(raw, item).reshape(entry["shape"]))
        end = last
    if 8 + length + end != len(data):
        raise ValueError(f"{path}: {len(data) - 8 - length - end} bytes follow the last tensor")
    return tensors


def write_checkpoint(folder, config, shards):
    """config.json, model-0000k-of-0000n.safetensors and the index, as the released checkpoints have them."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    weight_map, total = {}, 0
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write(folder / name, tensors, {"format": "pt"})
        weight_map.update(dict.fromkeys(tensors, name))
        total += sum(array.nbytes for _, array in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def read_checkpoint(folder):
    index = json.loads((Path(folder) / "model.safetensors.index.json").read_text())["weight_map"]
    files = {name: read(Path(folder) / name) for name in set(index.values())}
    if {(t, f) for t, f in index.items()} != {(t, f) for f, tensors in files.items() for t in tensors}:
        raise ValueError(f"{folder}: index and shards disagree")
    return {tensor: files[file][tensor] for tensor, file in index.items()}
