// The texts of the scripts in the language of the page, by the English ones; the server puts them here. In English there
// are none to look up.
export const texts = {};
