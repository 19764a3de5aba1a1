"""Files: samples in and out, models in and out. No pickle is ever read or written."""

from dualtap.io.collecting import SampleFile
from dualtap.io.matching import matched
from dualtap.io.models import MODEL_FORMATS, MODEL_SCHEMA, load, save
from dualtap.io.samples import FORMATS, READ_FORMATS, read_samples, write_samples
from dualtap.io.tables import EDGE_FORMATS, TABLE_FORMATS, write_edges, write_table

__all__ = [
    "EDGE_FORMATS",
    "FORMATS",
    "MODEL_FORMATS",
    "MODEL_SCHEMA",
    "READ_FORMATS",
    "TABLE_FORMATS",
    "SampleFile",
    "load",
    "matched",
    "read_samples",
    "save",
    "write_edges",
    "write_samples",
    "write_table",
]
