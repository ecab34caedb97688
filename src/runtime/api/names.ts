/** Hints for unknown names: the known names, and the closest match. */
export { listed, nameHint } from '../../known_names.js'
