/** The browser that pages are looked at in: that of `HEDDLE_CHROMIUM`, or the one a system keeps in the usual place. */
import { existsSync } from 'node:fs'

const usual = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** The browser's path; undefined where there is none, which is said. */
export function findChromium(): string | undefined {
  const found = [process.env.HEDDLE_CHROMIUM ?? '', ...usual].find((path) => path !== '' && existsSync(path))
  if (found === undefined) {
    console.log(
      `pages are not looked at: there is no Chromium at ${usual.join(', ')}; install it, or say in HEDDLE_CHROMIUM where one is`,
    )
  }
  return found
}
