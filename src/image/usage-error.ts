// The error of invalid arguments, shared by the commands of the image.

/** Reports invalid arguments. It is printed in one line, without a stack, and the exit code is 2. */
export class UsageError extends Error {}
