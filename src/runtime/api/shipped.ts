/** What models may need of the shipped specs besides their own declarations: a plan of that name stores values in these layouts, by these steps. */
export { conversions } from '../../../specs/conversions.js'
export { layouts } from '../../../specs/layouts.js'
