{{/* What every pod of the product is made of. All of them are admitted under Pod Security `restricted`. */}}

{{/* `pods`, and what is different for a part: dict root, values (of the part) */}}
{{- define "formgate.podSettings" -}}
{{- toJson (mergeOverwrite (deepCopy .root.Values.pods) (deepCopy .values.pods)) -}}
{{- end -}}

{{/* Metadata of a pod template: dict root, component, values, annotations (optional) */}}
{{- define "formgate.podMetadata" -}}
{{- $settings := fromJson (include "formgate.podSettings" .) -}}
labels:
  {{- toYaml (merge (fromYaml (include "formgate.podLabels" .)) $settings.labels) | nindent 2 }}
{{- with merge (.annotations | default dict) $settings.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The chart's version is not among them: another chart alone replaces no pod. What selects cannot be overridden. */}}
{{- define "formgate.podLabels" -}}
{{- $fixed := merge (fromYaml (include "formgate.selectorLabels" .)) (dict "app.kubernetes.io/part-of" "formgate") -}}
{{- toYaml (merge $fixed .root.Values.commonLabels) -}}
{{- end -}}

{{/* The head of a pod's spec: dict root, component, values, apiToken (whether the API is used) */}}
{{- define "formgate.podSpec" -}}
{{- $settings := fromJson (include "formgate.podSettings" .) -}}
serviceAccountName: {{ include "formgate.serviceAccountName" . }}
automountServiceAccountToken: {{ .apiToken | default false }}
enableServiceLinks: false
securityContext:
  {{- include "formgate.podSecurityContext" $settings | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $settings.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Settings of a pod, with runAsUser, runAsGroup and fsGroup */}}
{{- define "formgate.podSecurityContext" -}}
runAsNonRoot: true
{{- range $key := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- /* An operator's null takes the key away. */}}
{{- if and (hasKey $ $key) (not (kindIs "invalid" (get $ $key))) }}
{{ $key }}: {{ int64 (get $ $key) }}
{{- end }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "formgate.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Of a part with replicas: dict root, component, values */}}
{{- define "formgate.topologySpread" -}}
{{- $settings := fromJson (include "formgate.podSettings" .) -}}
{{- with $settings.topologySpread }}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ .topologyKey | quote }}
    maxSkew: {{ int .maxSkew }}
    whenUnsatisfiable: {{ .whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "formgate.selectorLabels" $ | nindent 8 }}
    {{- /* Old and new pods of a roll-out are spread by themselves. */}}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end -}}

{{/* The container of a process: dict root, name, values, args, env (YAML) */}}
{{- define "formgate.container" -}}
name: {{ .name }}
image: {{ include "formgate.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: {{ toJson .args }}
env:
  {{- .env | trim | nindent 2 }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
securityContext:
  {{- include "formgate.securityContext" .root | nindent 2 }}
# The line that says why a process could not start is then in the pod's status.
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{/* Mounts and volumes of every container of the image: root */}}
{{- define "formgate.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.caCertificates.configMap }}
- name: ca
  mountPath: /etc/formgate/ca
  readOnly: true
{{- end }}
{{- end -}}

{{- define "formgate.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- with .Values.caCertificates }}
{{- if .configMap }}
- name: ca
  configMap:
    name: {{ .configMap | quote }}
    items:
      - key: {{ .key | quote }}
        path: ca.crt
{{- end }}
{{- end }}
{{- end -}}
