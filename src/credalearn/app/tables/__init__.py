"""Tables of any size: read a block of rows at a time, written whole or not at all."""
