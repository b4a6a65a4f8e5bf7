// The bundler puts the bytes of a capture into the script.
declare module "*.gz" {
  const bytes: Uint8Array<ArrayBuffer>;
  export default bytes;
}
