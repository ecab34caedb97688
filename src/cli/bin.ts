#!/usr/bin/env node
/** Executable entry point: runs the command line of the process. */
import { describeFailure } from './failure.js'
import { main } from './main.js'

// A reader that closes the pipe early (`heddle inspect … | head`) is not an error; a full disk is.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  const { exitCode, text } = describeFailure(error, { verbose: process.argv.includes('--verbose'), cancelled: false })
  process.stderr.write(text)
  process.exit(exitCode)
})

// Without a reader of stderr, no message can be shown.
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.exit(3)
})

process.exitCode = await main(process.argv.slice(2))
