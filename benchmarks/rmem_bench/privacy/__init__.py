"""What the privacy policy finds in texts that others wrote (`quality`, over `corpora` and made-up `samples`), and how
fast it reads (`speed`)."""
