/** Messages for errors of the file system: a full disk or a read-only folder is not a defect of heddle. */
import { environmentError, type HeddleError } from './errors.js'

const hints: Readonly<Record<string, string>> = {
  ENOSPC:
    'free some space, or name a folder on another disk: HEDDLE_CACHE for compiled files, TMPDIR for temporary files of compilers',
  EDQUOT: 'free some space, or name a folder elsewhere with HEDDLE_CACHE',
  EFBIG: 'allow larger files: ulimit -f unlimited',
  EACCES: 'make it writable, or name another folder for the cache with HEDDLE_CACHE',
  EPERM: 'make it writable, or name another folder for the cache with HEDDLE_CACHE',
  EROFS: 'make it writable, or name another folder for the cache with HEDDLE_CACHE',
  EEXIST: 'a file is in the place of a folder: remove it, or name another folder for the cache with HEDDLE_CACHE',
  ENOTDIR: 'a file is in the place of a folder: remove it, or name another folder for the cache with HEDDLE_CACHE',
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: "the disk's quota is used up",
  EFBIG: 'the file is larger than the process may write (ulimit -f)',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  EROFS: 'the file system is read-only',
  EEXIST: 'it is a file',
  ENOTDIR: 'a part of the path is a file',
}

/** Error of a failed write to `path`; undefined for other causes. */
function refusal(path: string, error: unknown): HeddleError | undefined {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (!Object.hasOwn(reasons, code)) return undefined
  return environmentError(
    ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code) ? 'cache.full' : 'cache.write',
    `cannot write ${path}: ${reasons[code]}`,
    {
      hint: hints[code] ?? '',
      cause: error,
    },
  )
}

/** Returns the result of `action`. @throws environment `cache.full`, `cache.write` for errors of the file system; other errors of `action` */
export async function writing<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw refusal(path, error) ?? error
  }
}

/** Checks a compiler's output for a full disk or a file size limit. @throws environment `cache.full` */
export function refuseFullDisk(path: string, complaint: string): void {
  if (/file size limit exceeded|file too large/i.test(complaint)) {
    throw environmentError(
      'cache.full',
      `the limit on the size of files (ulimit -f) is too small: ${path} could not be compiled`,
      {
        hint: hints.EFBIG ?? '',
        cause: complaint,
      },
    )
  }
  if (!/no space left on device|disk quota exceeded/i.test(complaint)) return
  throw environmentError('cache.full', `the disk is full: ${path} could not be compiled`, {
    hint: hints.ENOSPC ?? '',
    cause: complaint,
  })
}
