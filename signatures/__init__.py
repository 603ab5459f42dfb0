"""What each stage that asks a language model is asked, and the types that stages exchange."""
