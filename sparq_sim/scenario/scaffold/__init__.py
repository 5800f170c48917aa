"""What `sparq-sim new` creates: packages with a plug-in, and scenario files, from templates."""
