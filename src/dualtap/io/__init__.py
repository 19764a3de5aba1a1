"""Files: samples in and out, models in and out. No pickle is ever read or written."""

from dualtap.io.collecting import SampleFile
from dualtap.io.models import MODEL_FORMATS, MODEL_SCHEMA, load, save
from dualtap.io.samples import FORMATS, read_samples, write_samples

__all__ = [
    "FORMATS",
    "MODEL_FORMATS",
    "MODEL_SCHEMA",
    "SampleFile",
    "load",
    "read_samples",
    "save",
    "write_samples",
]
