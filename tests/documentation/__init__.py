"""The commands and programs of the pages are carried out, and what they print is compared."""
