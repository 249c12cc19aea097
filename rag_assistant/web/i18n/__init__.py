"""The languages of the page, and its texts in each of them.

English is the source: texts are in the code, and a catalog, ``translations/CODE.po``, has their translations. Text for
models isn't translated; nothing below ``web`` knows the language.
"""
