/** The usual theme with the fonts of the reader's machine: nothing is downloaded, and a page is a few kilobytes. */
import theme from 'vitepress/theme-without-fonts'
import './style.css'

export default theme
