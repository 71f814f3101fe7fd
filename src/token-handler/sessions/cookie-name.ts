// Recognises the names of cookies that browsers accept only over https (RFC 6265bis section 4.1.3).

export const requiresHttps = (name: string): boolean => /^__(?:Host|Secure)-/.test(name);
