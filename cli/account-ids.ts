/** Returns true for text that has the form of an API key. */
export const isApiKey = (text: string) => /^svc_[\w-]+$/.test(text);

/** Returns true for a key of test mode. */
export const isTestKey = (apiKey: string) => apiKey.startsWith("svc_test_");

/** Returns true for text that has the form of a merchant's id. */
export const isMerchantId = (text: string) => /^mrch_[0-9a-f]{32}$/.test(text);
