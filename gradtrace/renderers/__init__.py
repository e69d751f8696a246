"""One output format a file: plain values of `gradtrace.model` in, text or a picture out. Nothing here knows torch."""
