"""Requests through providers' Batch APIs: half the price, answers within a day. Each provider has one file."""
