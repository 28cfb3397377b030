//! The least that Envoy takes for a control plane: no clusters and no listeners, over as much HTTP/2 and gRPC as that
//! needs.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

const PREFACE: usize = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

// Types and flags of frames (RFC 9113).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A server that Envoy may subscribe at, and that keeps silent until it is told to answer.
pub(super) struct ControlPlane {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    answers: Mutex<bool>,
    told: Condvar,
    /// All header blocks that came.
    headers: Mutex<Vec<Vec<u8>>>,
}

impl ControlPlane {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback address has free ports");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A connection ends with an error when Envoy does.
                thread::spawn(move || drop(serve(stream, &state)));
            }
        });
        Self { port, state }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Lets it answer from now on.
    pub(super) fn answer(&self) {
        *self.state.answers.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.told.notify_all();
    }

    /// Tells whether a header of some request had this value.
    pub(super) fn has_seen(&self, value: &str) -> bool {
        let headers = self.state.headers.lock().unwrap_or_else(PoisonError::into_inner);
        let plain = |block: &Vec<u8>| block.windows(value.len()).any(|window| window == value.as_bytes());
        headers.iter().any(plain)
    }
}

fn serve(mut stream: TcpStream, state: &State) -> io::Result<()> {
    stream.read_exact(&mut [0; PREFACE])?;
    // No dynamic table, so that header values need no state to be read; and windows wide enough for all that comes.
    let settings = [&setting(1, 0)[..], &setting(4, 0x7fff_ffff)].concat();
    write(&mut stream, SETTINGS, 0, 0, &settings)?;
    write(&mut stream, WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes())?;
    let mut answered: Vec<&str> = Vec::new();
    loop {
        let (kind, flags, id, payload) = read(&mut stream)?;
        match kind {
            SETTINGS if flags & ACK == 0 => write(&mut stream, SETTINGS, ACK, 0, &[])?,
            PING if flags & ACK == 0 => write(&mut stream, PING, ACK, 0, &payload)?,
            HEADERS => {
                state.headers.lock().unwrap_or_else(PoisonError::into_inner).push(payload);
                let waiting = state.answers.lock().unwrap_or_else(PoisonError::into_inner);
                drop(state.told.wait_while(waiting, |answers| !*answers).unwrap_or_else(PoisonError::into_inner));
                write(&mut stream, HEADERS, END_HEADERS, id, &answer_headers())?;
            }
            DATA => {
                for name in ["envoy.config.cluster.v3.Cluster", "envoy.config.listener.v3.Listener"] {
                    let asks = payload.windows(name.len()).any(|window| window == name.as_bytes());
                    // What comes later about the same type acknowledges the answer.
                    if asks && !answered.contains(&name) {
                        answered.push(name);
                        write(&mut stream, DATA, 0, id, &nothing_of(name))?;
                    }
                }
            }
            _ => {}
        }
    }
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// `:status: 200` from the static table, then `content-type`, spelled out (RFC 7541).
fn answer_headers() -> Vec<u8> {
    [&[0x88, 0][..], &text("content-type"), &text("application/grpc")].concat()
}

/// A `DiscoveryResponse` without resources, as a gRPC message.
fn nothing_of(name: &str) -> Vec<u8> {
    let [version, type_url, nonce] = [1_u8, 4, 5].map(|field| field << 3 | 2);
    let url = format!("type.googleapis.com/{name}");
    let message = [&[version][..], &text("1"), &[type_url], &text(&url), &[nonce], &text("1")].concat();
    let length = u32::try_from(message.len()).expect("the message is short");
    [&[0][..], &length.to_be_bytes(), &message].concat()
}

/// A short text behind its length, which HPACK and protobuf write alike.
fn text(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("the text is short");
    [&[length][..], text.as_bytes()].concat()
}

fn write(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).expect("the frame is short");
    stream.write_all(&[&length.to_be_bytes()[1..], &[kind, flags], &id.to_be_bytes(), payload].concat())
}

/// Reads a frame: its type, its flags, its stream and its payload.
fn read(stream: &mut TcpStream) -> io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let [a, b, c, kind, flags, id @ ..] = head;
    let length = u32::from_be_bytes([0, a, b, c]);
    let mut payload = vec![0; usize::try_from(length).expect("24 bits fit")];
    stream.read_exact(&mut payload)?;
    Ok((kind, flags, u32::from_be_bytes(id), payload))
}
