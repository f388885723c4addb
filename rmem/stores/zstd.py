"""The zstd of Python 3.14 (`compression.zstd`), or its backport on older versions."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError, get_frame_info, train_dict
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError, get_frame_info, train_dict

__all__ = ["ZstdCompressor", "ZstdDict", "ZstdError", "compress", "decompress", "get_frame_info", "train_dict"]


def compress(compressor: ZstdCompressor, data: bytes) -> bytes:
    """Return `data` as one frame. Not for two threads at once on one compressor."""
    compressor.set_pledged_input_size(len(data))  # small frames take a third less time if their size is known
    return compressor.compress(data, ZstdCompressor.FLUSH_FRAME)


def decompress(frame: bytes, dictionary: ZstdDict | None = None) -> bytes:
    """Return what is in the first frame. A decompressor reads one frame only, so each call makes its own."""
    decompressor = ZstdDecompressor(None if dictionary is None else dictionary.as_digested_dict)
    data = decompressor.decompress(frame)
    if not decompressor.eof:
        raise ZstdError("the compressed data is cut short")
    return data
