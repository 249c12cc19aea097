"""Measure search on real data sets: keywords alone, vectors alone, both, and in conversations."""
