"""The partition folder: layout, manifest, reading, writing, verifying, describing."""
