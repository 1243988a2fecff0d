"""Pure functions over texts: views of rows, normalisation, shingles, MinHash. No file, no process, no config."""
