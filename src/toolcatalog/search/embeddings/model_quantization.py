"""Model quantization: a model of sentences that computes with bytes, for queries.

Processors multiply bytes several times faster than floating-point numbers, and the weights take a
quarter of the memory. The vectors differ a little (a cosine of about 0.99). They also depend on
the texts that are encoded at once, so the vectors of tools come from the model as it is.
"""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic


def quantize_model(network: bytes) -> bytes:
    """Return a model in the ONNX format with 8-bit weights and activations.

    The weights are stored as signed bytes with a factor for each channel. Takes seconds.
    """
    with tempfile.TemporaryDirectory() as folder, _quiet_log():
        plain, quantized = Path(folder) / "plain.onnx", Path(folder) / "quantized.onnx"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = str(plain)
        # weights that are stored as bytes become floating-point numbers, and nothing else changes
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
        quantize_dynamic(
            plain,
            quantized,
            weight_type=QuantType.QInt8,
            per_channel=True,
            extra_options={"MatMulConstBOnly": True},
        )
        return quantized.read_bytes()


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Log no hints of the library, which are for those who design models."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(previous)
