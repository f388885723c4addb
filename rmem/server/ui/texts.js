export const TEXTS = {};
