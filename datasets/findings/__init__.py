"""What readers found in a graph: taken, renamed, left out, suspicious or wrong; as lines, a warning or a table."""
