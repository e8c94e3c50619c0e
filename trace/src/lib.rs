//! A trace of an engine: what it was told and what it asked for, one JSON object a line.
