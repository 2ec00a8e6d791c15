"""OpenAI's chat completions as bytes on the wire: requests in, chunks and errors out, no I/O."""
